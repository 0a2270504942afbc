#!/usr/bin/env bats
# Lists: labels, selectors, pages.

load helper

# selected SELECTOR: names, in order of the alphabet
selected()
{
    openshell sandbox list --selector "$1" -o json |
        json "' '.join(sorted(s['name'] for s in d['sandboxes']))"
}

@test "a selector finds a sandbox at once, and only what has every pair" {
    create a --label team=red --label tier=1
    expect "$(selected team=red)" a
    create b --label team=red --label tier=2
    create c --label team=blue --label empty=
    expect "$(selected team=red)" "a b"
    expect "$(selected team=red,tier=2)" b
    expect "$(selected 'team=red, tier=1')" a
    expect "$(selected empty=)" c
    expect "$(selected team=green)" ""
    expect "$(openshell sandbox get a -o json | json "d['labels']['team']")" red
}

@test "a new sandbox is in a list with its label at once, each time" {
    local i
    for i in $(seq 20); do
        create "r$i" --label "k=$i"
        expect "$(selected "k=$i")" "r$i"
        openshell sandbox delete "r$i"
        expect "$(selected "k=$i")" ""
    done
}

@test "labels: limits and the alphabet are checked, the message names label and limit" {
    local long bad
    printf -v long 'a%.0s' $(seq 63)
    create ok --label "x=$long" --label "$long=y" --label example.com/part.of_it-1=V --label e=
    for bad in "x=${long}a" "${long}a=x" 'café=1' 'k=日本' '=v' 'a/b/c=d' '-k=v' 'k=-v' 'k-=v' 'k=v-' \
        'k=a=b' 'a b=c' 'k=a b' '/k=v' 'p/=v' $'k=\e[2J'; do
        run openshell sandbox create --name bad --detach --label "$bad"
        ((status == 1 || status == 2)) || {
            echo "accepted: $bad"
            false
        }
        contains "$output" label
        lacks "$output" $'\e'
        expect "$(names)" ok
    done
    run openshell sandbox create --name bad --detach --label nolabel
    ((status == 2 || status == 1))
    run openshell sandbox create --name bad --detach --label "x=${long}a"
    contains "$output" 63
    contains "$output" x
}

@test "the same label twice: the last one holds, or it is refused" {
    run openshell sandbox create --name a --detach --label k=1 --label k=2
    if ((status == 0)); then
        expect "$(selected k=2)" a
        expect "$(selected k=1)" ""
    fi
}

@test "a wrong selector is refused, not taken for an empty one" {
    local bad
    create a --label k=v
    for bad in nopair '=v' ',' 'k=v,' 'k==v' 'k!=v'; do
        run openshell sandbox list --selector "$bad"
        ((status == 1 || status == 2)) || {
            echo "accepted: $bad"
            false
        }
    done
}

@test "pages: each sandbox comes once, in every size of page, and a token is bound to its list" {
    local i token text size
    for i in $(seq -w 25); do
        create "s$i" --label "odd=$((10#$i % 2))"
        openshell sandbox stop "s$i" >/dev/null
    done
    for size in 1 7 24 25 26 1000; do
        token='' text=''
        while :; do
            openshell sandbox list --page-size "$size" --page-token "$token" -o json >page
            (($(json "len(d['sandboxes'])" <page) <= size))
            text+=$(json "''.join(s['name'] + '\n' for s in d['sandboxes'])" <page)$'\n'
            token=$(json "d['next_page_token']" <page)
            [[ -n $token ]] || break
        done
        expect "$(grep . <<<"$text" | sort)" "$(seq -f 's%02g' 25)"
    done
    # What is there on one page has no further token.
    expect "$(openshell sandbox list -o json | json "d['next_page_token']")" ""
    # A token of another list, and nonsense, are refused.
    token=$(openshell sandbox list --page-size 5 -o json | json "d['next_page_token']")
    run -0 openshell sandbox list --page-size 7 --page-token "$token"
    run -1 openshell sandbox list --page-size 5 --selector odd=1 --page-token "$token"
    run -1 openshell sandbox list --page-token nonsense
    run openshell sandbox list --page-size -1
    ((status == 1 || status == 2))
    # The table says on stderr that there is more.
    run --separate-stderr -0 openshell sandbox list --page-size 5
    contains "$stderr" "$(openshell sandbox list --page-size 5 -o json | json "d['next_page_token']")"
}

@test "250 sandboxes are listed whole" {
    [[ ${OPENSHELL_TEST_MANY:-yes} == yes ]] || skip "OPENSHELL_TEST_MANY is not yes"
    local i pids=()
    for i in $(seq 250); do
        (create "many$i" && openshell sandbox stop "many$i") >/dev/null &
        pids+=($!)
        if ((i % 8 == 0)); then
            wait "${pids[@]}"
            pids=()
        fi
    done
    wait "${pids[@]}"
    expect "$(openshell sandbox list -o json | json "len(d['sandboxes']), bool(d['next_page_token'])")" \
        "[100, true]"
    expect "$(openshell sandbox list --page-size 1000 --names | sort -u | grep -c many)" 250
    # The first page of many is quick.
    local start
    start=$(milliseconds)
    openshell sandbox list >/dev/null 2>&1
    (($(milliseconds) - start < 500))
}
