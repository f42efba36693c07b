package repo

import (
	"os"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
)

// BenchmarkRun measures what the sandbox costs one run of git.
func BenchmarkRun(b *testing.B) {
	dir := b.TempDir()
	for name, confined := range map[string]bool{"in a sandbox": true, "without a sandbox": false} {
		b.Run(name, func(b *testing.B) {
			p, err := Scratch{Dir: dir}.find(os.Environ())
			if err != nil {
				b.Fatal(err)
			}
			if !confined {
				p.confine = func(...string) (*sandbox.Confinement, error) { return nil, sandbox.ErrUnavailable }
			}
			for b.Loop() {
				if _, err := p.run(b.Context(), call{dir: dir, writes: []string{dir}, gitDir: os.DevNull, tree: dir}, "version"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
