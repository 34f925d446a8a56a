# fish completion for prefsfs, prefs-cloud and plutil: the options that their help names, and files.

function __prefsfs_options
    set -l program (commandline -opc)[1]
    set -l help -h
    string match -q '*plutil' $program; and set help -help
    $program $help | sed -n 's/^  \(-.*[^ ]\)  .*/\1/p' | sed 's/, /\n/g' | grep -o '^-[^ ]*'
end

function __prefsfs_mount_options
    prefsfs -h | sed -n 's/^  -o \([a-z_]*=\{0,1\}\).*/\1/p'
end

for command in prefsfs prefs-cloud plutil prefsfs-plutil
    complete -c $command -e
    complete -c $command -n 'string match -q -- "-*" (commandline -ct)' -a '(__prefsfs_options)'
end
complete -c prefsfs -s o -x -a '(__prefsfs_mount_options)'
