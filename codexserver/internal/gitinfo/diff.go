package gitinfo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	diffTimeout = 30 * time.Second
	maxOutput   = 64 << 20
)

// DiffToRemote compares the working tree that dir, an absolute path, is in with
// the closest of its commits that a remote is known to have: the diff has all
// that changed since, tracked files first, then those that are neither tracked
// nor ignored. It is git's, with binary patches, and what is no UTF-8 replaced.
// The remotes are not asked.
func DiffToRemote(ctx context.Context, dir string) (sha, diff string, err error) {
	ctx, cancel := context.WithTimeout(ctx, diffTimeout)
	defer cancel()
	if _, err := os.Stat(dir); err != nil {
		return "", "", fmt.Errorf("gitinfo: %w", err)
	}
	root := Root(dir)
	if root == "" {
		return "", "", errors.New("gitinfo: not in a git repository")
	}
	t := &tree{ctx: ctx, root: root}
	if err := t.disarm(); err != nil {
		return "", "", fmt.Errorf("gitinfo: filters of the repository: %w", err)
	}
	if sha, err = t.closest(); err != nil {
		return "", "", fmt.Errorf("gitinfo: closest commit of a remote: %w", err)
	}
	tracked, err := t.diff(sha)
	if err != nil {
		return "", "", fmt.Errorf("gitinfo: changes: %w", err)
	}
	untracked, err := t.untracked()
	if err != nil {
		return "", "", fmt.Errorf("gitinfo: untracked files: %w", err)
	}
	return sha, strings.ToValidUTF8(tracked+untracked, "\uFFFD"), nil
}

// tree is a working tree that git is asked about.
type tree struct {
	ctx  context.Context
	root string
	env  []string
}

// git runs git with stdin and gives what it prints.
func (t *tree) git(stdin string, args ...string) (string, error) {
	cmd := prepare(t.ctx, t.root, args...)
	// Missing objects are not fetched: a remote's address and the program that
	// speaks to it are the repository's to configure.
	cmd.Env = append(cmd.Env, "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none", "LC_ALL=C")
	cmd.Env = append(cmd.Env, t.env...)
	cmd.Stdin = strings.NewReader(stdin)
	out, errs := &bounded{max: maxOutput}, &bounded{max: 64 << 10}
	cmd.Stdout, cmd.Stderr = out, errs
	err := cmd.Run()
	if t.ctx.Err() != nil {
		return "", context.Cause(t.ctx)
	}
	var exit *exec.ExitError
	switch {
	case out.full:
		return "", fmt.Errorf("git %s prints more than %d MiB", args[0], maxOutput>>20)
	case errors.As(err, &exit):
		said, _, _ := strings.Cut(strings.TrimSpace(errs.String()), "\n")
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, said)
	}
	return out.String(), err
}

// bounded keeps so many bytes and refuses more.
type bounded struct {
	bytes.Buffer
	max  int
	full bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.max {
		b.full = true
		return 0, errors.New("too much output")
	}
	return b.Buffer.Write(p)
}

// disarm switches the filters off that the repository itself configures:
// programs that git would run over each file. Those of the user stay, since
// without them large files (git-lfs) would differ from what was committed.
func (t *tree) disarm() error {
	out, err := t.git("", "config", "--show-scope", "--name-only", "-z", "--get-regexp", `^filter\.`)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return nil // there are none
	}
	if err != nil {
		return err
	}
	count := 0
	set := func(key, value string) {
		n := strconv.Itoa(count)
		t.env = append(t.env, "GIT_CONFIG_KEY_"+n+"="+key, "GIT_CONFIG_VALUE_"+n+"="+value)
		count++
	}
	fields := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		scope, key := fields[i], fields[i+1]
		if scope != "local" && scope != "worktree" {
			continue
		}
		filter := key[:strings.LastIndexByte(key, '.')]
		set(filter+".clean", "")
		set(filter+".process", "")
		set(filter+".required", "false")
	}
	t.env = append(t.env, "GIT_CONFIG_COUNT="+strconv.Itoa(count))
	return nil
}

// closest finds the commit that a remote has and that the fewest commits
// separate from HEAD.
func (t *tree) closest() (string, error) {
	known, err := t.git("", "for-each-ref", "--count=1", "refs/remotes")
	if err != nil {
		return "", err
	}
	if known == "" {
		return "", errors.New("no remote is known to have any")
	}
	head, err := t.git("", "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return "", err
	}
	own, err := t.git("", "rev-list", "--boundary", "HEAD", "--not", "--remotes")
	if err != nil {
		return "", err
	}
	if own == "" {
		return strings.TrimSpace(head), nil
	}
	closest, least := "", 0
	for line := range strings.Lines(own) {
		sha, isBoundary := strings.CutPrefix(strings.TrimSpace(line), "-")
		if !isBoundary {
			continue
		}
		count, err := t.git("", "rev-list", "--count", sha+"..HEAD")
		if err != nil {
			return "", err
		}
		n, err := strconv.Atoi(strings.TrimSpace(count))
		if err != nil {
			return "", err
		}
		if closest == "" || n < least {
			closest, least = sha, n
		}
	}
	if closest == "" {
		return "", errors.New("no remote is known to have any that this branch grew from")
	}
	return closest, nil
}

// diff compares the tree with a commit, or with the index when args are none.
// The user's or the repository's configuration does not change its form.
func (t *tree) diff(args ...string) (string, error) {
	return t.git("", append([]string{"diff", "--no-color", "--no-ext-diff", "--no-textconv", "--binary", "--find-renames",
		"--src-prefix=a/", "--dst-prefix=b/", "--no-relative", "--submodule=short", "--ignore-submodules=dirty"}, append(args, "--")...)...)
}

// untracked gives the files that git does not know as new ones. An index of
// their own names them, so the repository's is not touched.
func (t *tree) untracked() (string, error) {
	list, err := t.git("", "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return "", err
	}
	var names strings.Builder
	for name := range strings.SplitSeq(list, "\x00") {
		if name != "" && !strings.HasSuffix(name, "/") { // another repository
			names.WriteString(name + "\x00")
		}
	}
	if names.Len() == 0 {
		return "", nil
	}
	dir, err := os.MkdirTemp("", "codex-index-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	own := &tree{ctx: t.ctx, root: t.root, env: append(t.env, "GIT_INDEX_FILE="+filepath.Join(dir, "index"))}
	if _, err := own.git(names.String(), "--literal-pathspecs", "add", "--intent-to-add", "--force", "--pathspec-from-file=-", "--pathspec-file-nul"); err != nil {
		return "", err
	}
	return own.diff()
}
