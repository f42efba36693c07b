//go:build soak && linux

package git_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestLooksAgainstStatus checks how much CPU the look before a turn and the one after it take, each with all that it
// starts, in multiples of a git status of the same tree at that moment.
func TestLooksAgainstStatus(t *testing.T) {
	const most = 3
	for _, size := range []int{1_000, 20_000, 200_000} {
		first := newRepo(t)
		for i := range size {
			name := fmt.Sprintf("a%d/d%d/f%d", i%20, i%(size/100), i)
			first.write(name, fmt.Sprintf("file %d\nof many\n", i))
			first.age(name, time.Hour)
		}
		first.write(".git/info/exclude", "/out/\n")
		first.git("config", "gc.auto", "0")
		first.git("config", "core.bigFileThreshold", "1") // writes one pack
		first.commit("first")
		first.git("read-tree", "HEAD")
		first.git("update-index", "--refresh")
		first.age(".git/index", time.Minute) // which is what looks distrust in a fresh clone
		for _, tt := range []struct {
			name   string
			lay    func(r *fixture) *fixture
			writes string // the file that the turn writes; N is the round
		}{
			{"clean", nil, ""}, {"clean, and an edit", nil, "aN/dN/fN"}, {"clean, and a new file", nil, "a0/d0/made"},
			{"an ignored folder", func(r *fixture) *fixture {
				for i := range 5_000 {
					r.write(fmt.Sprintf("out/d%d/f%d", i%50, i), "ignored\n")
				}
				return r
			}, ""},
			{"dirty", func(r *fixture) *fixture {
				for i := range 1_000 {
					r.write(fmt.Sprintf("a%d/d%d/f%d", i%20, i%(size/100), i), "changed\n")
				}
				return r
			}, ""},
			{"dirty, and a new file", nil, "a0/d0/made"},
			{"a fresh clone", func(r *fixture) *fixture {
				r.git("clone", "-q", "--no-hardlinks", ".", "../clone")
				return &fixture{t, filepath.Join(r.dir, "../clone")}
			}, ""},
		} {
			r := first
			if tt.lay != nil {
				r = tt.lay(r)
			}
			var status, before, after []float64
			// Some rounds begin after the two seconds in which the times of a file that was written say nothing.
			for round, begun := 0, time.Now(); round < 7 || time.Since(begun) < 3*time.Second; round++ {
				begin := used(t)
				r.git("--no-optional-locks", "status", "--short")
				status = append(status, used(t)-begin)
				begin = used(t)
				s := must.Get(git.Look(t.Context(), r.dir, &git.Options{Scratch: scratch(t)}))(t)
				before = append(before, used(t)-begin)
				file := strings.ReplaceAll(tt.writes, "N", fmt.Sprint(round%7+1))
				if tt.writes != "" {
					r.write(file, fmt.Sprintln(round))
				}
				begin = used(t)
				list, diff, err := s.Compare(t.Context(), 1<<20)
				after = append(after, used(t)-begin)
				if err != nil || (len(list) == 1) != (tt.writes != "") || (diff != "") != (tt.writes != "") {
					t.Fatalf("%d changes, %v, diff %q", len(list), err, diff)
				}
				must.OK(t, s.Remove())
				if strings.HasSuffix(tt.writes, "made") {
					must.OK(t, os.Remove(filepath.Join(r.dir, file)))
				} else if tt.writes != "" {
					r.git("checkout", "-q", "--", file)
				}
			}
			one, two := slices.Min(before)/slices.Min(status), slices.Min(after)/slices.Min(status)
			t.Logf("%6d files, %-22s git status %6.1f ms, before %6.1f ms: %.1f, after %6.1f ms: %.1f",
				size, tt.name+":", slices.Min(status), slices.Min(before), one, slices.Min(after), two)
			if one > most || two > most {
				t.Errorf("%d files, %s: %.1f and %.1f times git status, want at most %v", size, tt.name, one, two, most)
			}
		}
	}
}

// used returns the CPU time of the test and of its children, in ms.
func used(t *testing.T) (ms float64) {
	t.Helper()
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		must.OK(t, syscall.Getrusage(who, &u))
		ms += float64(u.Utime.Nano()+u.Stime.Nano()) / 1e6
	}
	return ms
}
