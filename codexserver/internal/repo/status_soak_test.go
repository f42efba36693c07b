//go:build soak && linux

package repo_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
)

// TestTurnAgainstStatus checks what the look before a turn and the one after it cost together,
// in multiples of a warm git status.
func TestTurnAgainstStatus(t *testing.T) {
	const files, most = 200_000, 3.0
	r := newRepo(t)
	for i := range files {
		r.write(fmt.Sprintf("a%d/d%d/f%d", i%20, i%(files/100), i), fmt.Sprintf("file %d\nof many\n", i))
	}
	r.git("config", "gc.auto", "0")
	r.git("config", "core.bigFileThreshold", "1") // writes one pack
	r.commit("first")
	begin := time.Now()
	lap := func() time.Duration { took := time.Since(begin); begin = time.Now(); return took }
	status, turn := time.Hour, time.Hour
	for round := range 7 {
		lap()
		r.git("status", "--short")
		status = min(status, lap())
		s, err := repo.Take(t.Context(), r.dir, repo.Scratch{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		took := lap()
		r.write("a0/d0/f0", fmt.Sprintf("changed %d\n", round))
		lap()
		list, err := s.Compare(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatalf("%d changes, %v", len(list), err)
		}
		if diff, _, err := s.Diff(t.Context(), 1<<20); err != nil || diff == "" {
			t.Fatalf("diff %q, %v", diff, err)
		}
		if err := s.Remove(); err != nil {
			t.Fatal(err)
		}
		turn = min(turn, took+lap())
	}
	ratio := float64(turn) / float64(status)
	t.Logf("git status %v, a turn %v: %.1f times", status, turn, ratio)
	if ratio > most {
		t.Errorf("a turn takes %v, %.1f times as long as git status with %v; want at most %v times", turn, ratio, status, most)
	}
}

// TestStillAsByGitOften is TestStillAsByGit with more trees.
func TestStillAsByGitOften(t *testing.T) { stillAsByGit(t, 200) }
