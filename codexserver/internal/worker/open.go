package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

const (
	// tokenName is the record that says which opening of a home wrote last, also in the home.
	tokenName      = "codex-mcp/store"
	decisionFolder = "codex-mcp/decisions"
	// asideFolder has what was in a home that is not that of the store.
	asideFolder = "codex-mcp/replaced"
	maxToken    = 64
)

// roots are the files and folders of a home that are in a store.
var roots = []string{"sessions", "archived_sessions", "codex-mcp/tasks", "codex-mcp/rules.json"}

// kind is what the name of a file means.
type kind int

const (
	local kind = iota // not in a store
	isLog
	isRecord
)

func kindOf(name string) kind {
	base := path.Base(name)
	switch top, _, _ := strings.Cut(name, "/"); {
	case CheckName(name) != nil:
	case (top == "sessions" || top == "archived_sessions") && strings.HasPrefix(base, "rollout-") &&
		strings.HasSuffix(base, ".jsonl"):
		return isLog
	case path.Dir(name) == "codex-mcp/tasks" && strings.HasPrefix(base, "task-") && strings.HasSuffix(base, ".json"),
		name == "codex-mcp/rules.json":
		return isRecord
	}
	return local
}

// Open makes a home and a store the same, and returns the home's mirror. Only one process at a
// time may have a mirror of a home, and the store must not have another writer.
//
// If the home wrote to the store last, what the home has more is sent. Otherwise the home gets
// the content of the store, and its own files are moved to codex-mcp/replaced, where the next
// such opening replaces them. An empty store gets the files of the home.
func Open(ctx context.Context, home string, s Store, o *Options) (*Mirror, error) {
	if o == nil {
		o = &Options{}
	}
	home, err := filepath.Abs(home)
	if err != nil {
		return nil, err
	}
	m := &Mirror{
		home: home, store: s, token: newToken(), timeout: o.Timeout, log: o.Logger,
		lost: make(chan struct{}), logs: map[string]*log{},
	}
	if m.timeout <= 0 {
		m.timeout = defaultTimeout
	}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	m.life, m.end = context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, m.end)
	err = m.open()
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		m.end()
		return nil, fmt.Errorf("store: %w", err)
	}
	return m, nil
}

func (m *Mirror) open() (err error) {
	if err := os.MkdirAll(m.home, 0o700); err != nil {
		return err
	}
	if m.real, err = filepath.EvalSymlinks(m.home); err != nil {
		return err
	}
	root, err := os.OpenRoot(m.home)
	if err != nil {
		return err
	}
	defer root.Close()
	there, err := m.read(tokenName)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	here, err := readToken(root)
	if err != nil {
		return err
	}
	names, err := m.list()
	if err != nil {
		return err
	}
	if len(there) > 0 && !bytes.Equal(here, there) {
		err := setAside(root)
		if err == nil {
			// If the opening is cut off, the next one goes on with the files that are here
			// then, and does not move them over those that were moved now.
			err = m.writeToken(there)
		}
		if err != nil {
			return fmt.Errorf("moving the files of the home to %s: %w", asideFolder, err)
		}
	}
	got, err := m.bring(root, names)
	if err != nil {
		return err
	}
	sent, err := m.sendAll(root, names)
	if err != nil {
		return err
	}
	err = m.call(func(ctx context.Context) error { return m.store.Put(ctx, tokenName, []byte(m.token)) })
	if err == nil {
		err = m.writeToken([]byte(m.token))
	}
	m.log.Info("the home is that of the store", "got", got, "sent", sent)
	return err
}

func (m *Mirror) writeToken(token []byte) error {
	return safefile.Write(filepath.Join(m.home, filepath.FromSlash(tokenName)), token, 0o600)
}

func readToken(root *os.Root) ([]byte, error) {
	f, err := safefile.OpenIn(root, filepath.FromSlash(tokenName), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text, err := f.ReadAll(maxToken)
	return text, errors.Join(err, f.Close())
}

// list returns the sizes of what the store has of a home.
func (m *Mirror) list() (map[string]int64, error) {
	all := map[string]int64{}
	for after := ""; ; {
		var page []Info
		err := m.call(func(ctx context.Context) (err error) {
			page, err = m.store.List(ctx, after)
			return err
		})
		if err != nil || len(page) == 0 {
			return all, err
		}
		for _, i := range page {
			if i.Name <= after {
				return nil, fmt.Errorf("the list of the store is not in order at %.100q", i.Name)
			}
			if after = i.Name; kindOf(after) != local {
				all[after] = i.Size
			}
		}
	}
}

// setAside moves the files of a home away.
func setAside(root *os.Root) error {
	aside := filepath.FromSlash(asideFolder)
	for _, name := range roots {
		name = filepath.FromSlash(name)
		if _, err := root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		to := filepath.Join(aside, name)
		err := root.RemoveAll(to)
		if err == nil {
			err = root.MkdirAll(filepath.Dir(to), 0o700)
		}
		if err == nil {
			err = root.Rename(name, to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bring writes the files that the home lacks, and the lines that its logs lack.
func (m *Mirror) bring(root *os.Root, names map[string]int64) (count int, err error) {
	for name, size := range names {
		info, err := root.Lstat(filepath.FromSlash(name))
		missing := errors.Is(err, fs.ErrNotExist)
		switch {
		case err != nil && !missing:
			return count, err
		case !missing && !info.Mode().IsRegular():
			return count, &safefile.KindError{Path: name, Mode: info.Mode()}
		case !missing && (kindOf(name) == isRecord || info.Size() >= size):
			continue
		}
		if err := m.fetch(root, name); err != nil {
			return count, fmt.Errorf("%s: %w", name, err)
		}
		count++
	}
	return count, nil
}

// fetch writes a file from the store.
func (m *Mirror) fetch(root *os.Root, name string) error {
	to := filepath.FromSlash(name)
	if err := root.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	temp := filepath.Join(filepath.Dir(to), ".tmp-store")
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = m.each(name, func(data []byte) error {
		_, err := f.Write(data)
		return err
	})
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(temp, to)
	}
	if err != nil {
		return errors.Join(err, root.Remove(temp))
	}
	return nil
}

// each calls f with the parts of a log or record.
func (m *Mirror) each(name string, f func([]byte) error) error {
	for at := int64(0); ; {
		var data []byte
		err := m.call(func(ctx context.Context) (err error) {
			data, err = m.store.Read(ctx, name, at, MaxData)
			return err
		})
		if err != nil || len(data) == 0 {
			return err
		}
		if err := f(data); err != nil {
			return err
		}
		at += int64(len(data))
	}
}

func (m *Mirror) read(name string) ([]byte, error) {
	var all []byte
	err := m.each(name, func(data []byte) error {
		if all = append(all, data...); len(all) > MaxValue {
			return fmt.Errorf("%s has more than %d bytes", name, MaxValue)
		}
		return nil
	})
	return all, err
}

// sendAll sends what the store lacks of a home.
func (m *Mirror) sendAll(root *os.Root, names map[string]int64) (count int, err error) {
	for _, top := range roots {
		err := fs.WalkDir(root.FS(), top, func(name string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || !e.Type().IsRegular() || kindOf(name) == local {
				return err
			}
			sent, err := m.sendOne(root, name, names)
			if sent {
				count++
			}
			return err
		})
		if err != nil {
			return count, err
		}
	}
	return count, nil
}

func (m *Mirror) sendOne(root *os.Root, name string, names map[string]int64) (sent bool, err error) {
	f, err := safefile.OpenIn(root, filepath.FromSlash(name), os.O_RDONLY)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if kindOf(name) == isLog {
		l := &log{sent: names[name]}
		m.logs[name] = l
		before := l.sent
		err := m.send(l, name, f)
		return l.sent != before, err
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxValue+1))
	if err != nil {
		return false, err
	}
	if len(data) > MaxValue {
		m.log.Warn("a file is too large for the store", "name", name)
		return false, nil
	}
	if size, ok := names[name]; ok && size == int64(len(data)) {
		if there, err := m.read(name); err != nil || bytes.Equal(there, data) {
			return false, err
		}
	}
	return true, m.call(func(ctx context.Context) error { return m.store.Put(ctx, name, data) })
}
