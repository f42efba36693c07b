package appserver_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/google/go-cmp/cmp"
)

func TestSplitCommand(t *testing.T) {
	for _, test := range []struct {
		line string
		want []string
	}{
		{"", []string{}},
		{"ls", []string{"ls"}},
		{"  ls   -a  ", []string{"ls", "-a"}},
		{"/bin/bash -lc 'touch a && echo b'", []string{"/bin/bash", "-lc", "touch a && echo b"}},
		{`/bin/bash -lc "'sh' '-c' 'x'"`, []string{"/bin/bash", "-lc", "'sh' '-c' 'x'"}},
		{`echo "a\"b" 'c'"d"e\ f`, []string{"echo", `a"b`, "cde f"}},
		{`echo "\$x \n"`, []string{"echo", `$x \n`}},
		{"echo '' \"\"", []string{"echo", "", ""}},
		{"echo 'line\nbreak'", []string{"echo", "line\nbreak"}},
		{"echo 'no end", []string{"echo 'no end"}},
		{`echo "no end`, []string{`echo "no end`}},
		{`echo "no end\`, []string{`echo "no end\`}},
		{`echo \`, []string{`echo \`}},
	} {
		if diff := cmp.Diff(test.want, appserver.SplitCommand(test.line)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.line, diff)
		}
	}
}

// FuzzSplitCommand: nothing of a command is lost but blanks and quoting.
func FuzzSplitCommand(f *testing.F) {
	for _, s := range []string{"ls -a", "a 'b c' \"d\\\"e\"", "'", "\\", "a\\\nb", "\"\\", "''''\"\""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words := appserver.SplitCommand(line)
		total := 0
		for _, w := range words {
			total += len(w)
		}
		if total > len(line) {
			t.Errorf("%q gives more than it is: %q", line, words)
		}
	})
}
