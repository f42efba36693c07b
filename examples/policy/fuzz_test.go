package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"mvdan.cc/sh/v3/syntax"
)

// keywords begin something other than a simple command; no table of the policy has them.
var keywords = []string{"time", "coproc", "let", "declare", "local", "export", "readonly", "typeset", "nameref", "function", "select"}

// FuzzSplit compares the commands with those of a shell's parser.
func FuzzSplit(f *testing.F) {
	for _, script := range []string{"ls", "a b && c|d", "a=b c", "if x", "a --b=c,d@e:f+g/h -", "time ls", "& a", "a\tb"} {
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script string) {
		got, ok := split([]string{"sh", "-c", script})
		if !ok || slices.ContainsFunc(got, func(c []string) bool { return slices.Contains(keywords, c[0]) }) {
			return
		}
		file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
		if err != nil {
			return // and a shell will not run it
		}
		var want [][]string
		syntax.Walk(file, func(n syntax.Node) bool {
			if call, ok := n.(*syntax.CallExpr); ok {
				var words []string
				for _, a := range call.Assigns {
					words = append(words, script[a.Pos().Offset():a.End().Offset()])
				}
				for _, w := range call.Args {
					words = append(words, w.Lit())
				}
				want = append(want, words)
			}
			return true
		})
		must.Equal(t, script, want, got)
	})
}
