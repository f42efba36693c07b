package main

import (
	"os"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func TestRead(t *testing.T) {
	events := string(must.Get(os.ReadFile("testdata/events.json"))(t))
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
