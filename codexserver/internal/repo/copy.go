package repo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Limits of what is copied from a repository.
const (
	maxLooseRef = 8 << 10  // longer than any hash or name of a ref
	maxRefsSize = 64 << 20 // the files of all refs together
	maxRefs     = 100_000  // loose refs and folders
)

// allowance is how much more may be copied.
type allowance struct {
	entries int // loose refs and folders
	bytes   int64
}

// maxIndex is the size of the largest index in bytes.
const maxIndex = 1 << 30

// copyIndex copies the index of a git folder, which has one part or two.
func copyIndex(to, from string) error {
	names, err := filepath.Glob(filepath.Join(escapeGlob(from), "sharedindex.*"))
	if err != nil {
		return err
	}
	for _, name := range append(names, "index") {
		if err := copyFile(to, from, filepath.Base(name), maxIndex); err != nil {
			return err
		}
	}
	return nil
}

// escapeGlob makes a path match itself in a pattern.
func escapeGlob(path string) string {
	if filepath.Separator == '\\' {
		return path // patterns have no escape here, and git's folders no such names
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// copyFile copies the regular file name from one folder to another, with its time, because
// git compares the time of the index with those of the files. A missing file is ignored.
// A file of more than most bytes is an error.
func copyFile(to, from, name string, most int64) (err error) {
	source, err := safefile.Open(filepath.Join(from, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer source.Close()
	copied, err := os.OpenFile(filepath.Join(to, name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(copied, io.LimitReader(source, most+1))
	if err == nil && n > most {
		err = &safefile.SizeError{Path: filepath.Join(from, name), Max: most}
	}
	if err := errors.Join(err, copied.Close()); err != nil {
		return err
	}
	return os.Chtimes(copied.Name(), time.Time{}, source.Info().ModTime())
}

// writeText writes a file, without the copy of a large text that [os.WriteFile] would need.
func writeText(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// copyRefs copies HEAD and the refs below the prefixes, from files or tables.
func (p *private) copyRefs(ctx context.Context, prefixes []string) error {
	left := allowance{maxRefs, maxRefsSize}
	if err := left.copyFile(p.dir, p.gitDir, "HEAD", maxLooseRef); err != nil {
		return err
	}
	for _, name := range []string{"packed-refs", "shallow"} {
		if name == "packed-refs" && len(prefixes) == 0 {
			continue
		}
		if err := left.copyFile(p.common, p.commonDir, name, maxRefsSize); err != nil {
			return err
		}
	}
	for _, prefix := range prefixes {
		if err := p.copyTree(ctx, p.common, p.commonDir, filepath.FromSlash(prefix), maxLooseRef, &left); err != nil {
			return err
		}
	}
	if err := p.copyTree(ctx, p.common, p.commonDir, "reftable", maxRefsSize, &left); err != nil || p.dir == p.common {
		return err
	}
	return p.copyTree(ctx, p.dir, p.gitDir, "reftable", maxRefsSize, &left)
}

// copyFile copies a file as copyFile does, and counts its bytes.
func (a *allowance) copyFile(to, from, name string, most int64) error {
	err := copyFile(to, from, name, min(most, a.bytes))
	var size *safefile.SizeError
	if errors.As(err, &size) && size.Max == a.bytes {
		return fmt.Errorf("the refs of the repository have more than %d bytes", maxRefsSize)
	}
	if err != nil {
		return err
	}
	info, err := os.Lstat(filepath.Join(to, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there was no such file
	}
	if err != nil {
		return err
	}
	a.bytes -= info.Size()
	return nil
}

// copyTree copies the folder name with all regular files below it, without links and
// special files. A file may have at most most bytes.
func (p *private) copyTree(ctx context.Context, to, from, name string, most int64, left *allowance) error {
	entries, err := os.ReadDir(filepath.Join(from, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var path *fs.PathError
	if errors.As(err, &path) && len(entries) == 0 {
		return nil // a repository that keeps its refs in tables has a file refs/heads
	}
	if err := left.count(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(to, name), 0o700); err != nil {
		return err
	}
	for _, entry := range entries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		inner := filepath.Join(name, entry.Name())
		switch {
		case entry.IsDir():
			err = p.copyTree(ctx, to, from, inner, most, left)
		case entry.Type().IsRegular():
			if err = left.count(); err == nil {
				err = left.copyFile(to, from, inner, most)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// count counts a loose ref or a folder.
func (a *allowance) count() error {
	if a.entries--; a.entries < 0 {
		return fmt.Errorf("the repository has more than %d refs and folders of refs", maxRefs)
	}
	return nil
}
