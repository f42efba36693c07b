package repo

import (
	"context"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/setting"
)

// TakeLater is Take a second later, when no file of the working tree at dir has just changed.
func TakeLater(ctx context.Context, dir string, scratch Scratch) (*Snapshot, error) {
	return takeAt(ctx, dir, scratch, time.Now().Add(time.Second))
}

// TakeByGit is Take where git must look, because any file may just have changed.
func TakeByGit(ctx context.Context, dir string, scratch Scratch) (*Snapshot, error) {
	return takeAt(ctx, dir, scratch, time.Time{})
}

func takeAt(ctx context.Context, dir string, scratch Scratch, begin time.Time) (*Snapshot, error) {
	s := &Snapshot{root: dir, files: setting.DefaultFiles}
	err := s.take(ctx, scratch, begin)
	s.begin = time.Now().Add(time.Second)
	return s, err
}

// Gaps are the gaps of the last Compare.
func (s *Snapshot) Gaps() []Gap { return s.gaps() }
