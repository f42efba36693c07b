package repo

import (
	"context"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/setting"
)

// SetStep makes Apply call f after it has written a temporary file, and after it has
// written or removed a file.
func (p *Plan) SetStep(f func()) { p.step = f }

// TakeLater is Take a second later, when no file of the working tree at dir has just changed.
func TakeLater(ctx context.Context, dir string, scratch Scratch) (*Snapshot, error) {
	s := &Snapshot{root: dir, files: setting.DefaultFiles}
	begin := time.Now().Add(time.Second)
	err := s.take(ctx, scratch, begin)
	s.begin = begin
	return s, err
}
