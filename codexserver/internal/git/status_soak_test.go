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

// TestTurnAgainstStatus checks how much CPU the look before a turn and the one after it take together,
// with git, in multiples of a warm git status of the same tree.
func TestTurnAgainstStatus(t *testing.T) {
	// A small tree costs the starts of git: none for a clean tree in which the turn changes nothing.
	most := map[int]float64{1_000: 12, 20_000: 4, 200_000: 4}
	const still = 3
	for _, size := range []int{1_000, 20_000, 200_000} {
		r := newRepo(t)
		for i := range size {
			name := fmt.Sprintf("a%d/d%d/f%d", i%20, i%(size/100), i)
			r.write(name, fmt.Sprintf("file %d\nof many\n", i))
			r.age(name, time.Hour)
		}
		r.write(".git/info/exclude", "/out/\n")
		r.git("config", "gc.auto", "0")
		r.git("config", "core.bigFileThreshold", "1") // writes one pack
		r.commit("first")
		r.git("read-tree", "HEAD")
		r.git("update-index", "--refresh")
		for _, tt := range []struct {
			name   string
			lay    func()
			writes string // the file that the turn writes; N is the round
		}{
			{"clean", func() {}, ""}, {"clean, and a new file", func() {}, "a0/d0/made"}, {"clean, and an edit", func() {}, "aN/dN/fN"},
			{"an ignored folder", func() {
				for i := range 5_000 {
					r.write(fmt.Sprintf("out/d%d/f%d", i%50, i), "ignored\n")
				}
			}, ""},
			{"changed and new files", func() {
				for i := range 10 {
					r.write(fmt.Sprintf("a%d/d%d/f%d", i, i, i), "changed\n")
				}
				for i := range 3 {
					r.write(fmt.Sprintf("a%d/new", i), "new\n")
				}
			}, ""},
			{"changed and new files, and another one", func() {}, "a0/d0/made"},
		} {
			tt.lay()
			var status, turn []float64
			for round := range 7 {
				file := strings.ReplaceAll(tt.writes, "N", fmt.Sprint(round+1)) // git must look if it has just changed
				begin := used(t)
				r.git("--no-optional-locks", "status", "--short")
				status = append(status, used(t)-begin)
				begin = used(t)
				s := must.Get(git.Look(t.Context(), r.dir, &git.Options{Scratch: scratch(t)}))(t)
				took := used(t) - begin
				if tt.writes != "" {
					r.write(file, fmt.Sprintln(round))
				}
				begin = used(t)
				list, diff, err := s.Compare(t.Context(), 1<<20)
				if err != nil || (len(list) == 1) != (tt.writes != "") || (diff != "") != (tt.writes != "") {
					t.Fatalf("%d changes, %v, diff %q", len(list), err, diff)
				}
				must.OK(t, s.Remove())
				turn = append(turn, took+used(t)-begin)
				if tt.writes == "a0/d0/made" {
					must.OK(t, os.Remove(filepath.Join(r.dir, file)))
				} else if tt.writes != "" {
					r.git("checkout", "-q", "--", file)
				}
			}
			ratio := slices.Min(turn) / slices.Min(status)
			t.Logf("%d files, %s: git status %.1f ms, a turn %.1f ms: %.1f times", size, tt.name, slices.Min(status), slices.Min(turn), ratio)
			limit := most[size]
			if tt.name == "clean" {
				limit = still
			}
			if ratio > limit {
				t.Errorf("%d files, %s: %.1f times git status, want at most %v", size, tt.name, ratio, limit)
			}
		}
	}
}

func (r *fixture) age(name string, by time.Duration) {
	r.t.Helper()
	then := time.Now().Add(-by)
	must.OK(r.t, os.Chtimes(filepath.Join(r.dir, name), then, then))
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
