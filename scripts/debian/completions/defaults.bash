# bash completion for defaults and prefs: verbs, domains, keys, types, values, as `prefs complete` says.

_defaults() {
  local IFS=$'\n' word=${COMP_WORDS[COMP_CWORD]} words=() i quote=
  COMPREPLY=()
  # The words after the options: the verb, the domain, the key and so on.
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      -currentHost|--apple-text|--json|--plist|--path|--sync|--dry-run|--force|--effective|--global|--all|--over|--skip|--merge|--drift|--effect|--rules|--adopt) ;;
      -host|-app|--for|--at|--as|--since|--until|--by|--via|--place|--into|--because|--confirm|--lease) ((i++)) ;;
      *) words+=("${COMP_WORDS[i]//[\\\"\']/}") ;;
    esac
  done
  local candidates=''
  case $word:${#words[@]} in
    --*:[1-9]*) candidates=$(prefs complete options "${words[@]}" 2>/dev/null) ;;
    *:0) candidates=$(prefs complete verbs "${COMP_WORDS[0]}" 2>/dev/null; printf '%s\n' -currentHost -host) ;;
    *:1)
      case ${words[0]} in
        domains|find|profiles|synchronize|declared|record|complete) return ;;
        help) candidates=$(prefs complete verbs "${COMP_WORDS[0]}" 2>/dev/null) ;;
        cloud) candidates=$'status\nlogin\nlogout\nadd\nremove\nsync\nlog\nrestore' ;;
        schema) candidates=$'swift\nmarkdown\njson\nimport' ;;
        gsettings) candidates=$'on\noff' ;;
        effects) candidates=$'run\ncheck' ;;
        import-from) candidates=$'dconf\ngsettings' ;;
        apply|lint|check) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
        *) candidates=$(printf '%s\n' -g; prefs complete domains 2>/dev/null) ;;
      esac ;;
    *:2)
      case ${words[0]} in
        read|read-type|write|rename|delete|explain|watch|describe|history)
          candidates=$(prefs complete keys "${words[1]}" 2>/dev/null) ;;
        schema) candidates=$(prefs complete domains 2>/dev/null) ;;
        effects) candidates=$(prefs complete keys prefsfs.effects 2>/dev/null) ;;
        import|export|apply|lint|check) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;
      esac ;;
    *)
      [ "${words[0]}" = write ] || return
      case ${words[${#words[@]}-1]} in
        -bool|-boolean) candidates=$'true\nfalse\nyes\nno' ;;
        -string) candidates=$(prefs complete values "${words[1]}" "${words[2]}" 2>/dev/null) ;;
        *) [ ${#words[@]} -gt 3 ] || candidates=$(
          prefs complete values "${words[1]}" "${words[2]}" 2>/dev/null
          printf '%s\n' -string -int -float -bool -date -data -array -array-add -dict -dict-add) ;;
      esac ;;
  esac
  # Without `compgen -W`, which would run commands that stand in a key. A key with blanks is a word;
  # where the word begins with a quote, bash closes it.
  case $word in [\"\']*) quote=${word:0:1} word=${word:1} ;; *) word=${word//\\/} ;; esac
  while IFS= read -r i; do
    [[ -n $i && $i == "$word"* ]] || continue
    case $quote in
      \") i=${i//\\/\\\\} i=${i//\"/\\\"} i=${i//\$/\\$} i=${i//\`/\\\`} ;;
      \') i=${i//\'/\'\\\'\'} ;;
      *) i=$(printf '%q' "$i") ;;
    esac
    COMPREPLY+=("$i")
  done <<<"$candidates"
}

complete -F _defaults defaults prefs prefsfs-defaults
