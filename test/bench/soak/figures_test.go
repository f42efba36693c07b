package main

import (
	"io"
	"strings"
	"testing"
	"time"
)

// TestJudge looks at runs of ten minutes.
func TestJudge(t *testing.T) {
	for name, tt := range map[string]struct {
		memory func(second int) int // MiB
		want   string
	}{
		"flat":         {func(int) int { return 100 }, ""},
		"saw":          {func(s int) int { return 50 + s%60 }, ""},
		"warms up":     {func(s int) int { return min(300, 10*s) }, ""},
		"peaks":        {func(s int) int { return 100 + 900*(s/570) }, ""},
		"leaks":        {func(s int) int { return 100 + s/8 }, "memory rose from 118 to 162 MiB"},
		"doubles late": {func(s int) int { return 100 + 100*(s/300) }, "memory rose from 100 to 200 MiB"},
	} {
		f := &figures{names: []string{"server"}}
		for s := range 600 {
			f.samples = append(f.samples, sample{time.Duration(s) * time.Second, 0, [4]int{tt.memory(s), -1, 20, 10}})
		}
		var out strings.Builder
		err := f.judge(io.Writer(&out))
		if got := errorText(err); !strings.Contains(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("%s: %q, want %q\n%s", name, got, tt.want, &out)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
