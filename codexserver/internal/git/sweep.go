package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Sweep removes the folders of processes that were killed.
func (s Scratch) Sweep(ctx context.Context) error {
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var failed []error
	for _, e := range entries {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !e.IsDir() || !strings.HasPrefix(e.Name(), mirrorPrefix) {
			continue
		}
		dir := filepath.Join(s.Dir, e.Name())
		f, err := os.Open(dir)
		if err != nil {
			continue
		}
		if safefile.Lock(f) == nil {
			failed = append(failed, os.RemoveAll(dir))
		}
		_ = f.Close()
	}
	return errors.Join(failed...)
}
