# fish completion for defaults and prefs: verbs, domains, keys, types, values, as `prefs complete` says.
complete -c defaults -e
complete -c prefs -e

# The words after the options: the verb, the domain, the key and so on.
function __defaults_words
    set -l words (commandline -opc)
    set -e words[1]
    set -l skip 0
    for word in $words
        if test $skip = 1
            set skip 0
            continue
        end
        switch $word
            case -currentHost --apple-text --json --plist --path --sync --dry-run --force --effective \
                    --global --all --over --skip --merge --drift --effect --rules --adopt
            case -host -app --for --at --as --since --until --by --via --place --into --because --confirm --lease
                set skip 1
            case '*'
                echo -- $word
        end
    end
end

function __defaults_count
    test (count (__defaults_words)) = $argv[1]
end

function __defaults_candidates
    set -l words (__defaults_words)
    if string match -q -- '--*' (commandline -ct); and set -q words[1]
        prefs complete options $words 2>/dev/null
        return
    end
    switch (count $words)
        case 0
            prefs complete verbs (commandline -opc)[1] 2>/dev/null
            printf '%s\n' -currentHost -host
        case 1
            switch $words[1]
                case domains find profiles synchronize declared record complete
                case help
                    prefs complete verbs (commandline -opc)[1] 2>/dev/null
                case cloud
                    printf '%s\n' status login logout add remove sync log restore
                case schema
                    printf '%s\n' swift markdown json import
                case gsettings
                    printf '%s\n' on off
                case effects
                    printf '%s\n' run check
                case import-from
                    printf '%s\n' dconf gsettings
                case '*'
                    echo -- -g
                    prefs complete domains 2>/dev/null
            end
        case 2
            switch $words[1]
                case read read-type write rename delete explain watch describe history
                    prefs complete keys $words[2] 2>/dev/null
                case schema
                    prefs complete domains 2>/dev/null
                case effects
                    prefs complete keys prefsfs.effects 2>/dev/null
            end
        case '*'
            if test $words[1] = write
                switch $words[-1]
                    case -bool -boolean
                        printf '%s\n' true false yes no
                    case -string
                        prefs complete values $words[2] $words[3] 2>/dev/null
                    case '*'
                        if test (count $words) = 3
                            prefs complete values $words[2] $words[3] 2>/dev/null
                            printf '%s\n' -string -int -float -bool -date -data -array -array-add -dict -dict-add
                        end
                end
            end
    end
end

for command in defaults prefs
    complete -c $command -f -a '(__defaults_candidates)'
    complete -c $command -n 'contains -- (__defaults_words)[1] import export apply lint check' -F
end
complete -c prefsfs-defaults -w defaults
