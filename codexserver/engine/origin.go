package engine

import (
	"context"
	"path/filepath"
)

// Origin is where a client runs whose server several programs share. An engine runs the
// commands of the client's conversations with its environment. What the engine itself
// needs, such as the keys of a provider, it takes from its own environment.
type Origin struct {
	// Folder is the client's working folder, an absolute path.
	Folder string
	// Environ is the client's environment, NAME=value.
	Environ []string
}

type originKey struct{}

// WithOrigin returns a context for the calls of a client that does not run where this
// process does.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, originKey{}, &o)
}

// OriginOf returns where the client runs whose call ctx is, or nil if that is where this
// process runs.
func OriginOf(ctx context.Context) *Origin {
	o, _ := ctx.Value(originKey{}).(*Origin)
	return o
}

// Abs returns the absolute path of a path that the client names whose call ctx is.
func Abs(ctx context.Context, path string) (string, error) {
	if o := OriginOf(ctx); o != nil && !filepath.IsAbs(path) {
		return filepath.Join(o.Folder, path), nil
	}
	return filepath.Abs(path)
}
