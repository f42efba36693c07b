//go:build amd64 || arm64

package box

// Like makes a sandbox with other options that does not try the system again.
func (s *Sandbox) Like(o Options) *Sandbox {
	like := New(o)
	like.lacks = s.lacks
	return like
}
