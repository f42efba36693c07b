package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Merge is what a merge of a worktree's branch would change in the working tree that the worktree was made for. Nothing of
// it is in that yet. It is not safe for concurrent use.
type Merge struct {
	// Root is the top of that working tree, and Commit the last one of the branch.
	Root, Commit string
	// Files are the files that HEAD has otherwise than the merge, sorted by path.
	Files []Merged

	mirror *mirror
	tree   string // of the merge
}

// Merged is a file that a merge adds, changes or removes. It is a regular file.
type Merged struct {
	Path string // relative to the root, with slashes
	Was  bool   // HEAD has it
	// Data is what git would write, with its line ends and without filters; nil removes the file.
	Data *string
	// Program says whether it becomes executable, or is no longer; nil if it is not and was not, or stays as it is.
	Program *bool

	mode, id       string // those of HEAD
	newMode, newID string
}

// Refusal is why the work of a worktree cannot be brought into a working tree. Nothing was changed there.
type Refusal struct {
	Why   string
	Paths []string // of the files that are the reason, if it is about files; with slashes
}

// Error implements error.
func (r *Refusal) Error() string {
	if len(r.Paths) == 0 {
		return r.Why
	}
	names := make([]string, len(r.Paths))
	for i, path := range r.Paths {
		names[i] = strconv.QuoteToASCII(path)
	}
	return r.Why + ": " + strings.Join(names, ", ")
}

// maxMerged bounds the bytes of all files of a merge.
const maxMerged = 64 << 20

// Merge merges the branch of the worktree with HEAD of the working tree that it was made for, without a trace in either:
// git works on a mirror, and runs no hook, filter or merge driver. The error is a [*Refusal] if the merge has conflicts, has
// what is no regular file or has a name that no working tree may have, and if git waits there for the end of a merge or a
// rebase. The caller must call Close.
func (w *Worktree) Merge(ctx context.Context) (_ *Merge, err error) {
	m, err := w.scratch.open(w.Root)
	if err != nil {
		return nil, err
	}
	if m.commonDir != w.CommonDir {
		return nil, fmt.Errorf("%s is not a working tree of the repository %s", w.Root, w.CommonDir)
	}
	if err := m.finished(); err != nil {
		return nil, err
	}
	merge := &Merge{Root: w.Root, mirror: m}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.remove())
		}
	}()
	head, err := m.commit(ctx, "HEAD")
	if err == nil {
		merge.Commit, err = m.commit(ctx, "refs/heads/"+w.Branch)
	}
	if err == nil {
		merge.tree, err = m.mergeTree(ctx, head, merge.Commit)
	}
	if err == nil {
		merge.Files, err = m.differences(ctx, head, merge.tree)
	}
	if err == nil && len(merge.Files) > 0 {
		err = merge.read(ctx)
	}
	if err != nil {
		return nil, err
	}
	return merge, nil
}

// Close removes the files of the merge.
func (m *Merge) Close() error { return m.mirror.remove() }

// unfinished are files of a git folder that are there while git waits for the end of something.
var unfinished = []struct{ file, what string }{
	{"MERGE_HEAD", "merge"}, {"rebase-merge", "rebase"}, {"rebase-apply", "rebase"},
	{"CHERRY_PICK_HEAD", "cherry-pick"}, {"REVERT_HEAD", "revert"},
}

// finished fails if git waits for the end of something in the working tree.
func (m *mirror) finished() error {
	for _, u := range unfinished {
		if exists(filepath.Join(m.gitDir, u.file)) {
			return &Refusal{Why: fmt.Sprintf("%s is in the middle of a %s; end that first", m.root, u.what)}
		}
	}
	return nil
}

// mergeTree merges two commits, and returns the tree. All that it writes is in the mirror.
func (m *mirror) mergeTree(ctx context.Context, head, branch string) (tree string, err error) {
	conflicts := false
	c := call{differs: true, differed: &conflicts}
	out, err := m.git(ctx, c, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", head, branch)
	switch {
	case err != nil && strings.Contains(err.Error(), "usage: git merge-tree"):
		return "", errors.New("git is older than 2.38, and cannot merge without a working tree")
	case err != nil:
		return "", err
	}
	tree, names, _ := strings.Cut(out, "\x00")
	if conflicts {
		paths := slices.DeleteFunc(strings.Split(names, "\x00"), func(name string) bool { return name == "" })
		return "", &Refusal{"it conflicts with HEAD", paths}
	}
	if !isHash(tree) {
		return "", fmt.Errorf("git merge-tree prints %q", out)
	}
	return tree, nil
}

const wrongName = "no working tree may have such a file"

// noFile is the mode that a file has on the side that lacks it.
const noFile = "000000"

// differences returns the files that differ in two trees. It refuses all of them if one is not to be in a working tree.
func (m *mirror) differences(ctx context.Context, from, to string) (files []Merged, err error) {
	out, err := m.git(ctx, call{}, "diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames",
		"--ignore-submodules=none", from, to)
	if err != nil {
		return nil, err
	}
	wrong := &Refusal{Why: wrongName}
	other := &Refusal{Why: "git must merge links and submodules"}
	there, seen := map[string]bool{}, map[string]bool{}
	for fields := strings.Split(out, "\x00"); len(fields) >= 2; fields = fields[2:] {
		about := strings.Fields(strings.TrimPrefix(fields[0], ":"))
		if len(about) != 5 {
			return nil, fmt.Errorf("git diff-tree prints %q", fields[:2])
		}
		f := Merged{Path: fields[1], mode: about[0], newMode: about[1], id: about[2], newID: about[3]}
		f.Was = f.mode != noFile
		if f.newMode == modeProgram && f.mode != modeProgram || f.newMode == modePlain && f.mode == modeProgram {
			f.Program = new(f.newMode == modeProgram)
		}
		if m.modeless() {
			f.Program = nil
		}
		switch regular := []string{noFile, modePlain, modeProgram}; {
		case seen[f.Path] || !isName(f.Path) || !filepath.IsLocal(filepath.FromSlash(f.Path)):
			wrong.Paths = append(wrong.Paths, f.Path)
		case !slices.Contains(regular, f.mode) || !slices.Contains(regular, f.newMode):
			other.Paths = append(other.Paths, f.Path)
		}
		seen[f.Path], there[f.Path] = true, f.newMode != noFile
		files = append(files, f)
	}
	for name, is := range there { // a tree that git has not made may have a file and a folder with one name
		for at := strings.LastIndexByte(name, '/'); is && at > 0; at = strings.LastIndexByte(name[:at], '/') {
			if there[name[:at]] {
				wrong.Paths = append(wrong.Paths, name)
			}
		}
	}
	for _, r := range []*Refusal{wrong, other} {
		if slices.Sort(r.Paths); len(r.Paths) > 0 {
			return nil, r
		}
	}
	slices.SortFunc(files, func(a, b Merged) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

// Modes of files in trees.
const modePlain, modeProgram = "100644", "100755"

// read reads what git would write for the files of the merge.
func (m *Merge) read(ctx context.Context) error {
	if err := m.measure(ctx); err != nil {
		return err
	}
	// Names that are those of a git folder for another system are refused here, too.
	safe := []string{"-c", "core.protectHFS=true", "-c", "core.protectNTFS=true"}
	if _, err := m.mirror.git(ctx, call{options: safe}, "read-tree", m.tree); err != nil {
		if _, name, is := strings.Cut(err.Error(), "invalid path '"); is {
			return &Refusal{wrongName, []string{strings.TrimSuffix(name, "'")}}
		}
		return err
	}
	filtered, err := m.filtered(ctx)
	if err != nil {
		return err
	}
	dir := filepath.Join(m.mirror.scratch, "merged")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	var names []string
	for _, f := range m.Files {
		if f.newMode != noFile {
			names = append(names, f.Path)
		}
	}
	if err := m.mirror.setAttributes("* -filter"); err != nil {
		return err
	}
	c := call{tree: dir, stdin: zeros(names)}
	if _, err := m.mirror.git(ctx, c, "checkout-index", "--quiet", "-z", "--stdin"); err != nil {
		return err
	}
	from, err := openFolder(dir)
	if err != nil {
		return err
	}
	defer from.close()
	refused := &Refusal{Why: needsProgram}
	for i := range m.Files {
		f := &m.Files[i]
		if f.newMode != noFile {
			data, err := from.read(f.Path, stat{mode: modeFile})
			if err != nil {
				return err
			}
			f.Data = new(string(data))
		}
		if filtered[f.Path] {
			pointers, err := m.pointers(ctx, f)
			if err != nil {
				return err
			}
			if !pointers {
				refused.Paths = append(refused.Paths, f.Path)
			}
		}
	}
	if len(refused.Paths) > 0 {
		return refused
	}
	return nil
}

// measure refuses what is too large.
func (m *Merge) measure(ctx context.Context) error {
	var ids strings.Builder
	for _, f := range m.Files {
		for _, id := range []string{f.id, f.newID} {
			if strings.Trim(id, "0") != "" {
				ids.WriteString(id + "\n")
			}
		}
	}
	out, err := m.mirror.git(ctx, call{stdin: ids.String()}, "cat-file", "--batch-check=%(objectname) %(objectsize)")
	if err != nil {
		return err
	}
	sizes := map[string]int64{}
	for line := range strings.Lines(out) {
		id, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if sizes[id], err = strconv.ParseInt(text, 10, 64); err != nil {
			return fmt.Errorf("git cat-file prints %q", line)
		}
	}
	left, large := int64(maxMerged), &Refusal{Why: tooLarge}
	for _, f := range m.Files {
		if left -= sizes[f.id] + sizes[f.newID]; max(sizes[f.id], sizes[f.newID]) > maxContent {
			large.Paths = append(large.Paths, f.Path)
		}
	}
	switch {
	case len(large.Paths) > 0:
		return large
	case left < 0:
		return &Refusal{Why: fmt.Sprintf("its files have more than %d MiB", maxMerged>>20)}
	}
	return nil
}

// filtered returns the files for which a filter would run, by the attributes that they have after the merge.
func (m *Merge) filtered(ctx context.Context) (filtered map[string]bool, err error) {
	var names []string
	for _, f := range m.Files {
		names = append(names, f.Path)
	}
	if err = m.mirror.setAttributes(""); err != nil {
		return nil, err
	}
	out, err := m.mirror.git(ctx, call{stdin: zeros(names)}, "check-attr", "--cached", "-z", "--stdin", "filter")
	filtered = map[string]bool{}
	for fields := strings.Split(out, "\x00"); len(fields) >= 3; fields = fields[3:] {
		filtered[fields[0]] = fields[2] != "unspecified" && fields[2] != "unset"
	}
	return filtered, err
}

// pointers reports whether a file is a pointer of git-lfs before and after the merge, as far as it is there: its filter
// makes nothing else of one.
func (m *Merge) pointers(ctx context.Context, f *Merged) (are bool, err error) {
	are = f.Data == nil || isPointer(*f.Data)
	if f.Was && are {
		was, err := m.mirror.git(ctx, call{cut: maxPointer + 1}, "cat-file", "blob", f.id)
		return isPointer(was), err
	}
	return are, nil
}

func isPointer(data string) bool {
	return len(data) <= maxPointer && strings.HasPrefix(data, string(pointer))
}

// Dirty returns those of the files, sorted, that the working tree or its index has otherwise than HEAD. Of a file that HEAD
// does not have it looks at the index alone.
func (m *Merge) Dirty(ctx context.Context, files []Merged) (dirty []string, err error) {
	entries, err := m.index(ctx)
	if err != nil {
		return nil, err
	}
	var head strings.Builder // the entries of an index of the files
	for _, f := range files {
		entry := ""
		if f.Was {
			entry = f.mode + " " + f.id + " 0"
			head.WriteString(entry + "\t" + f.Path + "\x00")
		}
		if entries[f.Path] != entry {
			dirty = append(dirty, f.Path)
		}
	}
	changed, err := m.changed(ctx, head.String())
	dirty = append(dirty, changed...)
	slices.Sort(dirty)
	return slices.Compact(dirty), err
}

// index returns the entries of the index of the working tree. That of a file which is not merged is none that git would write.
func (m *Merge) index(ctx context.Context) (entries map[string]string, err error) {
	if err := m.mirror.dropIndex(); err != nil {
		return nil, err
	}
	if _, err := m.mirror.copyIndex(); err != nil {
		return nil, err
	}
	listed, err := m.mirror.git(ctx, call{}, "ls-files", "--stage", "-z")
	entries = map[string]string{}
	for line := range strings.SplitSeq(listed, "\x00") {
		if entry, name, ok := strings.Cut(line, "\t"); ok {
			entries[name] += entry
		}
	}
	return entries, err
}

// changed returns what the working tree has otherwise than these entries of an index. They have no times, so that git compares
// what is in the files, and no flags.
func (m *Merge) changed(ctx context.Context, entries string) (names []string, err error) {
	if entries == "" {
		return nil, nil
	}
	if err := m.mirror.dropIndex(); err != nil {
		return nil, err
	}
	if _, err := m.mirror.git(ctx, call{stdin: entries}, "update-index", "-z", "--index-info"); err != nil {
		return nil, err
	}
	out, err := m.mirror.git(ctx, call{}, "diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv",
		"--ignore-submodules=all")
	names = strings.Split(out, "\x00")
	return names[:len(names)-1], err
}

// dropIndex removes the index of the mirror, if there is one.
func (m *mirror) dropIndex() error {
	err := os.Remove(filepath.Join(m.scratch, "index"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
