package repo_test

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
)

// BenchmarkSnapshot measures what a snapshot of a repository with 20,000 files
// costs before a turn, and after one that changed a few of them, or many.
func BenchmarkSnapshot(b *testing.B) {
	for _, changed := range []int{0, 10, 10_000} {
		r := newRepo(b)
		for i := range 20_000 {
			r.write(fmt.Sprintf("d%d/f%d", i%200, i), fmt.Sprintf("file %d\nof many\n", i))
		}
		r.commit("first")
		b.Run(fmt.Sprint(changed, " changed/before"), func(b *testing.B) {
			for b.Loop() {
				s, err := repo.Take(b.Context(), r.dir, repo.Scratch{Dir: b.TempDir()})
				if err != nil {
					b.Fatal(err)
				}
				if err := s.Remove(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprint(changed, " changed/after"), func(b *testing.B) {
			for round := 0; b.Loop(); round++ {
				b.StopTimer()
				s, err := repo.Take(b.Context(), r.dir, repo.Scratch{Dir: b.TempDir()})
				if err != nil {
					b.Fatal(err)
				}
				for i := range changed {
					r.write(fmt.Sprintf("d%d/f%d", i%200, i), fmt.Sprintf("file %d\nof many, changed %d\n", i, round))
				}
				b.StartTimer()
				if list, err := s.Compare(b.Context()); err != nil || len(list) != changed {
					b.Fatalf("%d changes, %v", len(list), err)
				}
				b.StopTimer()
				if err := s.Remove(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

var whole = flag.Bool("whole", false, "compare with git status in a repository of 200,000 files")

// TestTurnAgainstStatus checks what the look before a turn and the one after it cost together,
// in multiples of a warm git status.
func TestTurnAgainstStatus(t *testing.T) {
	files, most := 5_000, 30.0 // there, starting git takes most of the time
	if *whole {
		files, most = 200_000, 3
	}
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
