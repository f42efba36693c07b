package repo

import (
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Limits of a comparison of only the files that have changed.
const (
	maxBrief      = 1 << 20 // bytes of them; each turn that ends reads as much
	maxBriefPatch = 1 << 20 // bytes of their diff, which is kept
)

// blob is a file of a tree.
type blob struct {
	name string
	mode uint32
	id   [sha1.Size]byte
}

// brief makes a private git folder with two trees that have only the files that a look without git has
// found, as they were and as they are, so that git need neither read nor write a whole index. It
// reports false where git must store the files: where it may convert them, where they are many bytes, and
// where a file seems to have the bytes of one before.
func (s *Snapshot) brief(ctx context.Context, n *newly) (now content, ok bool, err error) {
	if !n.bare || len(n.names) == 0 {
		return now, false, nil
	}
	x := s.quiet
	if err := x.configure(ctx, s.scratch); err != nil {
		return now, false, err
	}
	p, err := (Scratch{Dir: s.scratch}).reserve(x.source)
	if err != nil {
		return now, false, err
	}
	defer func() {
		if !ok || err != nil {
			err = errors.Join(err, p.remove())
		}
	}()
	if err := x.prepare(ctx, p); err != nil || p.converts() || p.hashSize() != sha1.Size {
		return now, false, err
	}
	names, now := s.fresh(n)
	k := newPack()
	before, after, ok, err := s.blobs(ctx, k, n, names, &now)
	if !ok || err != nil {
		return now, false, err
	}
	s.before.tree, now.tree = k.addTree(before), k.addTree(after)
	if err = k.write(filepath.Join(p.common, "objects", "pack")); err == nil {
		s.private = p
	}
	return now, true, err
}

// blobs adds the files with the names to a pack, as they were and as they are.
func (s *Snapshot) blobs(ctx context.Context, k *pack, n *newly, names []string, now *content) (before, after []blob, ok bool, err error) {
	present, _, err := s.sort(ctx, names, now)
	if err != nil || len(now.marks) > 0 {
		return nil, nil, false, err
	}
	root, err := os.OpenRoot(s.root)
	if err != nil {
		return nil, nil, false, err
	}
	defer root.Close()
	left := int64(maxBrief)
	for _, name := range names {
		if isGitName(name) || !filepath.IsLocal(filepath.FromSlash(name)) || path.Clean(name) != name {
			return nil, nil, false, nil
		}
		was := k.was(s.quiet, n, name)
		is := blob{}
		if slices.Contains(present, name) {
			info, err := look(root, name)
			switch {
			case err != nil || info != nil && (!info.Mode().IsRegular() || info.Size() > left):
				return nil, nil, false, nil
			case info != nil:
				f, err := safefile.OpenIn(root, filepath.FromSlash(name), os.O_RDONLY)
				if err != nil {
					return nil, nil, false, nil // git says why
				}
				data, err := f.ReadAll(left)
				if errors.Join(err, f.Close()) != nil {
					return nil, nil, false, nil
				}
				left -= int64(len(data))
				is = blob{name: name, mode: 0o100644}
				if f.Info().Mode()&0o100 != 0 {
					is.mode = 0o100755
				}
				is.id = k.add(packBlob, string(data))
			}
		}
		for list, b := range map[*[]blob]blob{&before: was, &after: is} {
			if b.name != "" {
				*list = append(*list, b)
			}
		}
	}
	// Of the same hash are the same bytes, unless somebody made them so, which only git notices.
	ok = !slices.ContainsFunc(after, func(is blob) bool { return slices.ContainsFunc(before, func(was blob) bool { return was.id == is.id }) })
	return before, after, ok && inOrder(before) && inOrder(after), nil
}

// was returns a file as it was at the snapshot, the zero value if there was none.
func (k *pack) was(x *still, n *newly, name string) (b blob) {
	e := n.files.entry(name)
	if e == nil {
		return b
	}
	b = blob{name: name, mode: e.mode}
	if h, ok := x.held[name]; ok {
		b.id = k.add(packBlob, string(h.data))
	} else {
		copy(b.id[:], n.data[e.at+indexStat:])
	}
	return b
}

// inOrder sorts files as git does, and reports false if one of them is a folder of another.
func inOrder(all []blob) bool {
	slices.SortFunc(all, func(a, b blob) int { return cmp.Compare(a.name, b.name) })
	return !slices.ContainsFunc(all, func(b blob) bool {
		i, _ := slices.BinarySearchFunc(all, b.name+"/", func(b blob, name string) int { return cmp.Compare(b.name, name) })
		return i < len(all) && strings.HasPrefix(all[i].name, b.name+"/")
	})
}

// addTree adds the tree of files in git's order, and those of their folders.
func (k *pack) addTree(all []blob) string {
	id := k.addFolder(all, 0)
	return hex.EncodeToString(id[:])
}

// addFolder adds the tree of a folder, whose path has a number of bytes.
func (k *pack) addFolder(all []blob, at int) [sha1.Size]byte {
	var b strings.Builder
	for len(all) > 0 {
		one, end := all[0], 1
		name, _, isFolder := strings.Cut(one.name[at:], "/")
		if isFolder {
			inner := one.name[:at+len(name)+1]
			for end < len(all) && strings.HasPrefix(all[end].name, inner) {
				end++
			}
			one.mode, one.id = 0o040000, k.addFolder(all[:end], len(inner))
		}
		fmt.Fprintf(&b, "%o %s\x00%s", one.mode, name, one.id[:])
		all = all[end:]
	}
	return k.add(packTree, b.String())
}

// diffBrief is [private.diffTrees] for the trees of [Snapshot.brief], and keeps the diff for
// [Snapshot.Diff].
func (s *Snapshot) diffBrief(ctx context.Context, to string) ([]Change, error) {
	if s.before.tree == to {
		return nil, nil
	}
	c := call{cut: maxBriefPatch, options: patchOptions}
	out, err := s.private.diff(ctx, c, "diff-tree", "-r", "-z", "--raw", "--numstat", "--no-abbrev", "-p", "--binary", "--full-index", renames(true), s.before.tree, to, "--")
	if err != nil {
		return nil, err
	}
	list, patch, ok := strings.Cut(out, "\x00\x00")
	if !ok || len(out) >= maxBriefPatch {
		return s.private.diffTrees(ctx, s.before.tree, to, true)
	}
	s.after.patch = patch
	return parseChanges(list)
}
