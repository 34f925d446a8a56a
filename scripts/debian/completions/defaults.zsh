#compdef defaults prefs prefsfs-defaults
# zsh completion for defaults and prefs: verbs, domains, keys, types, values, as `prefs complete` says.

_defaults_words() {
  local -a words_=() candidates=()
  local i
  # The words after the options: the verb, the domain, the key and so on.
  for ((i = 2; i < CURRENT; i++)); do
    case ${words[i]} in
      -currentHost|--apple-text|--json|--plist|--path|--sync|--dry-run|--force|--effective|--global|--all|--over|--skip|--merge|--drift|--effect|--rules|--adopt) ;;
      -host|-app|--for|--at|--as|--since|--until|--by|--via|--place|--into|--because|--confirm|--lease) ((i++)) ;;
      *) words_+=("${(Q)words[i]}") ;;
    esac
  done
  case $PREFIX:${#words_} in
    --*:[1-9]*) candidates=(${(f)"$(prefs complete options "${words_[@]}" 2>/dev/null)"}) ;;
    *:0) candidates=(${(f)"$(prefs complete verbs "${words[1]}" 2>/dev/null)"} -currentHost -host) ;;
    *:1)
      case ${words_[1]} in
        domains|find|profiles|synchronize|declared|record|complete) return ;;
        help) candidates=(${(f)"$(prefs complete verbs "${words[1]}" 2>/dev/null)"}) ;;
        cloud) candidates=(status login logout add remove sync log restore) ;;
        schema) candidates=(swift markdown json import) ;;
        gsettings) candidates=(on off) ;;
        effects) candidates=(run check) ;;
        import-from) candidates=(dconf gsettings) ;;
        apply|lint|check) _files; return ;;
        *) candidates=(-g ${(f)"$(prefs complete domains 2>/dev/null)"}) ;;
      esac ;;
    *:2)
      case ${words_[1]} in
        read|read-type|write|rename|delete|explain|watch|describe|history)
          candidates=(${(f)"$(prefs complete keys "${words_[2]}" 2>/dev/null)"}) ;;
        schema) candidates=(${(f)"$(prefs complete domains 2>/dev/null)"}) ;;
        effects) candidates=(${(f)"$(prefs complete keys prefsfs.effects 2>/dev/null)"}) ;;
        import|export|apply|lint|check) _files; return ;;
      esac ;;
    *)
      [[ ${words_[1]} == write ]] || return
      case ${words_[-1]} in
        -bool|-boolean) candidates=(true false yes no) ;;
        -string) candidates=(${(f)"$(prefs complete values "${words_[2]}" "${words_[3]}" 2>/dev/null)"}) ;;
        *) ((${#words_} > 3)) || candidates=(
            ${(f)"$(prefs complete values "${words_[2]}" "${words_[3]}" 2>/dev/null)"}
            -string -int -float -bool -date -data -array -array-add -dict -dict-add) ;;
      esac ;;
  esac
  compadd -- "${candidates[@]}"
}

_defaults_words "$@"
