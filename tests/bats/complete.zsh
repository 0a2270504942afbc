# Prints what zsh's completion system offers for a line: one match a line. Usage:
#     zsh -f complete.zsh DIRECTORY-OF-_openshell 'openshell sandbox '
# A zsh of its own runs on a pseudo-terminal; its compadd prints what it is given.
zmodload zsh/zpty
zpty shell zsh -f -i
# Typed line after line, so nothing of it may contain what ends the output.
zpty -w shell 'PROMPT="" RPROMPT="" ; stty -echo'
zpty -w shell "fpath=($1 \$fpath)"
zpty -w shell "autoload -Uz compinit; compinit -u -d $HOME/zcompdump"
zpty -w shell 'zstyle ":completion:*" list-grouped false; zstyle ":completion:*" menu no'
zpty -w shell 'compadd() {
    local -a hits arguments; arguments=("${(@)argv[1,(i)(-|--)]}")
    if (( ${arguments[(I)-[a-zA-Z]#[OAD]]} )); then builtin compadd "$@"; return; fi
    builtin compadd -A hits "$@"
    (( $#hits )) && print -rl -- "match: "${^hits}
    builtin compadd "$@"
}'
zpty -w shell 'shown() { zle complete-word; print; print -r -- "the ""end"; exit; }'
zpty -w shell 'zle -N shown; bindkey "^X" shown; print -r -- "the ""beginning"'
zpty -r -m shell text '*the beginning*'
zpty -n -w shell "$2"$'\x18'
zpty -r -m shell text '*the end*'
print -r -- "$text" | tr -d '\r' | sed -n 's/^.*match: //p'
zpty -d shell
