package main

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

const events = `{"Action":"start","Package":"github.com/codexmcp/codexmcp/a"}
{"Action":"run","Package":"github.com/codexmcp/codexmcp/a","Test":"TestPasses"}
{"Action":"output","Package":"github.com/codexmcp/codexmcp/a","Test":"TestPasses","Output":"quiet\n"}
{"Action":"pass","Package":"github.com/codexmcp/codexmcp/a","Test":"TestPasses"}
{"Action":"run","Package":"github.com/codexmcp/codexmcp/a","Test":"TestFails"}
{"Action":"output","Package":"github.com/codexmcp/codexmcp/a","Test":"TestFails","Output":"    a_test.go:1: broken\n"}
{"Action":"output","Package":"github.com/codexmcp/codexmcp/a","Test":"TestSkips/sub","Output":"=== RUN   TestSkips/sub\n"}
{"Action":"output","Package":"github.com/codexmcp/codexmcp/a","Test":"TestSkips/sub","Output":"    a_test.go:2: needs root\n"}
{"Action":"output","Package":"github.com/codexmcp/codexmcp/a","Test":"TestSkips/sub","Output":"--- SKIP: TestSkips/sub (0.00s)\n"}
{"Action":"skip","Package":"github.com/codexmcp/codexmcp/a","Test":"TestSkips/sub"}
{"Action":"output","Package":"github.com/codexmcp/codexmcp/a","Test":"TestFails","Output":"--- FAIL: TestFails (0.00s)\n"}
{"Action":"fail","Package":"github.com/codexmcp/codexmcp/a","Test":"TestFails"}
{"Action":"output","Package":"github.com/codexmcp/codexmcp/a","Output":"FAIL\n"}
{"Action":"fail","Package":"github.com/codexmcp/codexmcp/a"}
{"Action":"output","Package":"github.com/codexmcp/codexmcp/b","Test":"TestHangs","Output":"panic: test timed out\n"}
{"Action":"output","Package":"github.com/codexmcp/codexmcp/b","Output":"FAIL\tb\n"}
{"Action":"fail","Package":"github.com/codexmcp/codexmcp/b"}
{"Action":"output","Package":"github.com/codexmcp/codexmcp/c","Output":"PASS\n"}
{"Action":"output","Package":"github.com/codexmcp/codexmcp/c","Output":"ok  \tc\t0.1s\n"}
{"Action":"skip","Package":"github.com/codexmcp/codexmcp/none"}
`

func TestRead(t *testing.T) {
	var out strings.Builder
	r := must.Get(read(strings.NewReader(events), &out))(t)
	const want = "skipped a TestSkips/sub: a_test.go:2: needs root\n    a_test.go:1: broken\n--- FAIL: TestFails (0.00s)\nFAIL\nFAIL\tb\npanic: test timed out\nok  \tc\t0.1s\n"
	if out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
	for _, tt := range []struct{ list, want string }{
		{"# a note\nhere a TestSkips/sub\n", ""},
		{"here a TestSkips/sub\nhere a TestOther\nhere d TestOther\nthere a TestFails\n", ""}, // neither TestOther ran
		{"", "for here:\na TestSkips/sub was skipped"},
		{"there a TestSkips/sub\n", "for here:\na TestSkips/sub was skipped"},
		{"here a TestSkips/sub\nhere a TestPasses\n", "for here:\na TestPasses was not skipped"},
	} {
		err := r.compare(tt.list, "here")
		if (err == nil) != (tt.want == "") || err != nil && !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.list, err, tt.want)
		}
	}
	for _, ci := range []bool{false, true} {
		if err := check(strings.NewReader(events), &out, ci, "nowhere"); (err != nil) != ci {
			t.Errorf("in CI %t: %v", ci, err)
		}
		if err := check(strings.NewReader("no JSON\n"), &out, ci, ""); err == nil {
			t.Error("what is no JSON is accepted")
		}
	}
}

func TestSystem(t *testing.T) {
	const debian = "NAME=x\nVERSION_ID=\"12\"\nID=debian\n"
	for _, tt := range []struct{ goos, release, want string }{
		{"linux", debian, "debian"}, {"linux", "ID=\"ubuntu\"\n", "ubuntu"}, {"linux", "", "linux"}, {"darwin", debian, "darwin"}, {"windows", "", "windows"},
	} {
		must.Equal(t, tt.goos, tt.want, system(tt.goos, tt.release))
	}
}
