package rollout

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// sessions is below the configuration's home.
const sessions = "sessions"

// Find returns the path of a conversation's rollout below home, without the archive. It
// fails with fs.ErrNotExist when there is none.
func Find(ctx context.Context, home, id string) (string, error) {
	if _, err := uuid.Parse(id); err != nil { // ids come from clients
		return "", fs.ErrNotExist
	}
	all, err := Paths(ctx, home)
	if err != nil {
		return "", err
	}
	for _, path := range all {
		if strings.HasSuffix(path, "-"+id+".jsonl") {
			return path, nil
		}
	}
	return "", fs.ErrNotExist
}

// Paths returns the rollouts below home, newest first.
func Paths(ctx context.Context, home string) ([]string, error) {
	var paths []string
	err := filepath.WalkDir(filepath.Join(home, sessions), func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil
		}
		if err != nil {
			return err
		}
		if isRollout(path) && d.Type().IsRegular() {
			paths = append(paths, path)
		}
		return nil
	})
	slices.SortFunc(paths, func(a, b string) int { return cmp.Compare(filepath.Base(b), filepath.Base(a)) })
	return paths, err
}

// isRollout reports whether a name is that of a rollout.
func isRollout(path string) bool {
	name, isNamed := strings.CutPrefix(filepath.Base(path), "rollout-")
	name, isLines := strings.CutSuffix(name, ".jsonl")
	const idLen, timeLen = 36, len("2006-01-02T15-04-05")
	if !isNamed || !isLines || len(name) != timeLen+1+idLen {
		return false
	}
	_, err := uuid.Parse(name[timeLen+1:])
	return err == nil
}
