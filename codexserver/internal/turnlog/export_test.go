package turnlog

import "github.com/codexmcp/codexmcp/codexserver/internal/git"

// Bound lets a store keep another number of bytes, and returns the number that it kept before.
func Bound(s *Store, max int) (before int) {
	before, s.max = s.max, max
	return before
}

// FileSize returns the size of a store's file.
func FileSize(s *Store) int64 { return s.slots.next * pieceSize }

// Used returns how many bytes a store keeps, with what their pieces cost.
func Used(s *Store) int { return s.used }

// Patches returns the changes of the turn's patches, and how many files are left out.
func (t *Turn) Patches() ([]git.Change, int) { return t.patchChanges() }

// Patched returns the change of the file at an absolute path by the turn's patches, or nil.
func (t *Turn) Patched(path string) *git.Change { return t.patchOf(path) }

// PatchedOutside returns the changes by patches of the files that a snapshot does not cover.
func (t *Turn) PatchedOutside(covered func(path string) bool) []git.Change {
	return t.patchedOutside(covered)
}
