package git_test

import (
	"fmt"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
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
				s, err := git.Look(b.Context(), r.dir, &git.Options{Scratch: git.Scratch{Dir: b.TempDir()}})
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
				s, err := git.Look(b.Context(), r.dir, &git.Options{Scratch: git.Scratch{Dir: b.TempDir()}})
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
