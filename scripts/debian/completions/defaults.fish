# fish completion for defaults: verbs, domains, keys, types and values, as `defaults complete` says.
complete -c defaults -e

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
                    --global --all --over --skip --merge --drift --effect
            case -host -app --for --at --as --since --until --by --via --place --into
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
        defaults complete options $words 2>/dev/null
        return
    end
    switch (count $words)
        case 0
            defaults complete verbs 2>/dev/null
            printf '%s\n' -currentHost -host
        case 1
            switch $words[1]
                case domains find help cloud profiles synchronize declared record complete
                case schema
                    printf '%s\n' swift markdown json import
                case gsettings
                    printf '%s\n' on off
                case import-from
                    printf '%s\n' dconf gsettings
                case '*'
                    echo -- -g
                    defaults complete domains 2>/dev/null
            end
        case 2
            switch $words[1]
                case read read-type write rename delete explain watch describe history
                    defaults complete keys $words[2] 2>/dev/null
                case schema
                    defaults complete domains 2>/dev/null
            end
        case '*'
            if test $words[1] = write
                switch $words[-1]
                    case -bool -boolean
                        printf '%s\n' true false yes no
                    case -string
                        defaults complete values $words[2] $words[3] 2>/dev/null
                    case '*'
                        if test (count $words) = 3
                            defaults complete values $words[2] $words[3] 2>/dev/null
                            printf '%s\n' -string -int -float -bool -date -data -array -array-add -dict -dict-add
                        end
                end
            end
    end
end

complete -c defaults -f -a '(__defaults_candidates)'
complete -c defaults -n 'contains -- (__defaults_words)[1] import export apply lint check' -F
complete -c prefsfs-defaults -w defaults
