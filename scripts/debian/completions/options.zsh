#compdef prefsfs prefs-cloud plutil prefsfs-plutil
# zsh completion for prefsfs, prefs-cloud and plutil: the options that their help names, and files.

local program=${words[1]:t} help=-h
[[ $program == *plutil ]] && help=-help
if [[ $program == prefsfs && ${words[CURRENT-1]} == -o ]]; then
  compadd -S '' -- ${(f)"$(${words[1]} -h | sed -n 's/^  -o \([a-z_]*=\{0,1\}\).*/\1/p')"}
elif [[ $PREFIX == -* ]]; then
  compadd -- ${(f)"$(${words[1]} $help | sed -n 's/^  \(-.*[^ ]\)  .*/\1/p' | sed 's/, /\n/g' | grep -o '^-[^ ]*')"}
elif [[ $program == prefsfs ]]; then
  _files -/
else
  _files
fi
