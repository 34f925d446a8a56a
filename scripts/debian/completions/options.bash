# bash completion for prefsfs, prefs-cloud and plutil: the options that their help names, and files.

_prefsfs_options() {
  local IFS=$'\n' word=${COMP_WORDS[COMP_CWORD]} help=-h
  COMPREPLY=()
  case ${1##*/} in
    *plutil) help=-help ;;
    prefsfs)
      if [[ ${COMP_WORDS[COMP_CWORD-1]} == -o ]]; then
        COMPREPLY=($(compgen -W "$("$1" -h | sed -n 's/^  -o \([a-z_]*=\{0,1\}\).*/\1/p')" -- "$word"))
        return
      fi
      [[ $word == -* ]] || { compopt -o filenames; COMPREPLY=($(compgen -d -- "$word")); return; } ;;
  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$("$1" $help | sed -n 's/^  \(-.*[^ ]\)  .*/\1/p' | sed 's/, /\n/g' | grep -o '^-[^ ]*')" -- "$word"))
  else
    compopt -o filenames
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}

complete -o nospace -F _prefsfs_options prefsfs
complete -F _prefsfs_options prefs-cloud plutil prefsfs-plutil
