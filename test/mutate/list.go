package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// list is what survivors.txt says: which mutants may survive.
type list struct {
	names    map[string]string // the reason of each
	patterns []pattern
}

// pattern has several mutants of one file.
type pattern struct {
	file string
	rest *regexp.Regexp // the whole name after the file
}

func (p pattern) has(name string) bool {
	file, rest, _ := strings.Cut(name, " ")
	return file == p.file && p.rest.MatchString(rest)
}

// has reports whether the list has a mutant.
func (l *list) has(name string) bool {
	return l.names[name] != "" || slices.ContainsFunc(l.patterns, func(p pattern) bool { return p.has(name) })
}

// parseList reads survivors.txt: names of mutants, one a line, and after one or more of them the
// reason, indented. A reason begins with one of the words of kinds. A line that begins with ^ is
// a regular expression for the whole names of several mutants of one file.
func parseList(text string) (*list, error) {
	l := &list{names: map[string]string{}}
	var names []string // without a reason so far
	var patterns []pattern
	for n, line := range strings.Split(text, "\n") {
		fail := func(what string) (*list, error) { return nil, fmt.Errorf("survivors.txt:%d: %s", n+1, what) }
		reason, indented := strings.CutPrefix(line, "\t")
		switch {
		case line == "" || line[0] == '#':
		case indented:
			if names == nil && patterns == nil {
				return fail("a reason without a mutant")
			}
			kind, _, ok := strings.Cut(reason, ": ")
			if _, known := kinds[kind]; !ok || !known {
				return fail("the reason begins with no known kind")
			}
			if patterns != nil && !wide[kind] {
				return fail("a pattern may only be of the kinds words and effort")
			}
			for _, name := range names {
				l.names[name] = reason
			}
			l.patterns = append(l.patterns, patterns...)
			names, patterns = nil, nil
		case line[0] == '^':
			file, rest, _ := strings.Cut(line[1:], " ")
			re, err := regexp.Compile("^(?:" + rest + ")$")
			if err != nil || rest == "" {
				return fail("no file and regular expression")
			}
			patterns = append(patterns, pattern{file, re})
		case l.names[line] != "" || slices.Contains(names, line):
			return fail("the mutant is listed twice")
		default:
			names = append(names, line)
		}
	}
	if names != nil || patterns != nil {
		return nil, fmt.Errorf("survivors.txt: the last mutants have no reason")
	}
	return l, nil
}

// kinds are the kinds of reasons. None of them allows more than the code does.
var kinds = map[string]string{
	"same":     "no input tells the mutant from the code",
	"stricter": "the mutant asks, denies or refuses where the code need not, or does so more often",
	"words":    "only what is shown, logged or reported differs",
	"effort":   "only time, memory or a limit far from what occurs differs",
	"guarded":  "another check, which is named, refuses the same; the mutant removes one of two",
	"system":   "the difference needs a system, a failure or a race that tests cannot make; never for a decision",
}

// wide are the kinds of which a pattern may be. It also covers mutants of code that is not
// written yet, so its kind must be harmless for all of them.
var wide = map[string]bool{"words": true, "effort": true}
