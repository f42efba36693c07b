package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/shared"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

const (
	// sharedName is the name under which this program starts itself as the shared server.
	sharedName = "codex-mcp-shared"
	// sharedIdle is how long a shared server runs without a client and without work.
	sharedIdle = 5 * time.Minute
	// maxSharedLog is the size at which a shared server begins another log, in bytes.
	maxSharedLog = 4 << 20
	// maxConfiguration is the size of the largest configuration file, in bytes.
	maxConfiguration = 4 << 20
)

// share connects to the shared server for this process's command line, configuration and
// environment, and starts it if it does not run.
func share(ctx context.Context, o *options, c *configuration) (*shared.Conn, error) {
	folder, err := shared.Open(os.Getenv("XDG_RUNTIME_DIR"), c.home)
	if err != nil {
		return nil, err
	}
	name, err := o.sharedName(c.home)
	if err != nil {
		return nil, err
	}
	wd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	program := self()
	if program == "" {
		return nil, errors.New("the path of this program is unknown")
	}
	own := sharedVersion(program)
	conn, err := folder.Connect(ctx, name, own, shared.Origin{Folder: wd, Environ: os.Environ()}, func() *exec.Cmd {
		return &exec.Cmd{Path: program, Args: append([]string{sharedName}, os.Args[1:]...)}
	})
	if err == nil && conn.Version() != own {
		c.log.Warn("the shared server is of another version and still has work", "version", conn.Version(), "process", conn.PID())
	}
	return conn, err
}

// findShared connects to the shared server for this process's command line, configuration and
// environment, or else to the only one that runs.
func (o *options) findShared(ctx context.Context) (*shared.Conn, error) {
	home, err := config.Home(os.Getenv)
	if err != nil {
		return nil, err
	}
	folder, err := shared.Open(os.Getenv("XDG_RUNTIME_DIR"), home)
	if err != nil {
		return nil, err
	}
	own, err := o.sharedName(home)
	if err != nil {
		return nil, err
	}
	wd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	names, err := folder.Names()
	if err != nil {
		return nil, err
	}
	var running []string
	for _, name := range names {
		if _, err := folder.Status(ctx, name); err == nil {
			running = append(running, name)
		}
	}
	switch {
	case slices.Contains(running, own):
	case len(running) == 1:
		own = running[0]
	case len(running) == 0:
		return nil, errors.New("no shared server runs; --connect names a server over HTTP")
	default:
		return nil, fmt.Errorf("%d shared servers run, none for these flags and this environment: use those with which the conversation began", len(running))
	}
	return folder.Dial(ctx, own, shared.Origin{Folder: wd, Environ: os.Environ()})
}

// sharedVersion returns the version of this program. Builds without a release differ by
// the time of their file.
func sharedVersion(program string) string {
	v := version()
	if info, err := os.Stat(program); err == nil && (v == "dev" || strings.ContainsAny(v, "-+")) {
		v += " " + info.ModTime().UTC().Format(time.RFC3339Nano)
	}
	return v
}

// sharedName returns the name of the shared server: a sum of everything that would make
// another server of it. These are the home, the flags, codex-mcp.toml, the namespaces of
// this process, and the variables that the server itself reads.
func (o *options) sharedName(home string) (string, error) {
	namespaces, err := shared.Namespaces()
	if err != nil {
		return "", err
	}
	if err := o.makeAbsolute(); err != nil {
		return "", err
	}
	sum := sha256.New()
	add := func(text string) { fmt.Fprintf(sum, "%d:%s", len(text), text) }
	for _, text := range []string{home, namespaces, o.engine, o.codex, o.trace, o.folder, o.log.String(), o.logFormat, fmt.Sprint(o.strict, o.finish)} {
		add(text)
	}
	add(strings.Join(o.overrides, "\x00"))
	words := map[string]bool{}
	note := func(text string) {
		for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			words[word] = true
		}
	}
	note(strings.Join(o.overrides, " "))
	files, err := filepath.Glob(filepath.Join(home, "*.toml"))
	if err != nil {
		return "", err
	}
	for _, file := range files {
		text, err := safefile.Read(file, maxConfiguration)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		note(string(text))
		if filepath.Base(file) == config.SettingsFile {
			add(string(text))
		}
	}
	environ := slices.Clone(os.Environ())
	slices.Sort(environ)
	for _, entry := range environ {
		if name, _, _ := strings.Cut(entry, "="); words[name] || slices.Contains(serverVariables(), strings.ToUpper(name)) {
			add(entry)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// serverVariables returns the names of the variables that the server, git in the server, and
// Codex read, besides those that the configuration names.
func serverVariables() []string {
	return []string{
		"OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORGANIZATION", "OPENAI_PROJECT", "AZURE_OPENAI_API_KEY",
		"CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "CODEX_BIN", "CODEX_HOME", "RUST_LOG",
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"HOME", "SHELL", "TMPDIR", "XDG_CONFIG_HOME",
		"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "GIT_DIR", "GIT_COMMON_DIR",
	}
}

// makeAbsolute makes the paths of the command line independent of the working folder.
func (o *options) makeAbsolute() error {
	paths := []*string{&o.trace}
	if !isAddress(o.codex) && strings.ContainsRune(o.codex, filepath.Separator) {
		paths = append(paths, &o.codex)
	}
	for _, path := range paths {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = absolute
	}
	return nil
}

// runShared runs the shared server for the command line of the process that started it, and
// returns the exit status.
func runShared(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	defer surviveBrokenPipes()()
	ctx, stop := signal.NotifyContext(ctx, endingSignals()...)
	defer stop()
	o, err := parse("codex-mcp", args, stdout, stderr)
	if err == nil {
		err = serveShared(ctx, o)
	}
	if err != nil {
		return fail(stderr, err)
	}
	return 0
}

func serveShared(ctx context.Context, o *options) error {
	l, folder, name, err := shared.Listener()
	if err != nil {
		return err
	}
	defer l.Close()
	if err := shared.Adopt(); err != nil {
		return err
	}
	if err := o.makeAbsolute(); err != nil {
		return err
	}
	stderr := &sharedLog{f: os.Stderr, path: folder.Log(name)}
	c, err := configure(o, os.Getenv, o.logger(stderr))
	if err != nil {
		return err
	}
	c.warn(o, stderr)
	// The folder of the first client may be removed.
	if err := os.Chdir(c.home); err != nil {
		return err
	}
	e, err := choose(ctx, o, c)
	if err != nil {
		return err
	}
	c.log.Info("engine", "name", e.name, "reason", e.reason)
	err = c.withServer(o, e, func(s *codexserver.Server) error {
		return (&shared.Server{
			Folder: folder, Name: name, Version: sharedVersion(self()), About: "engine " + e.name, Idle: sharedIdle,
			Logger: c.log, Working: s.Working,
			Serve: func(ctx context.Context, conn io.ReadWriteCloser, from shared.Origin, left func()) {
				t := jsonrpc.Lines(struct{ io.Reader }{conn}, conn, conn)
				if err := s.ServeFrom(ctx, t, engine.Origin(from), left); err != nil {
					c.log.Warn("a client", "error", err)
				}
			},
		}).Run(ctx, l)
	})
	return errors.Join(err, e.Close())
}

// withShared returns a runner that calls f for each shared server of the user that runs.
func withShared(f func(ctx context.Context, folder *shared.Folder, name string) (*shared.Status, error), words string) runner {
	return func(ctx context.Context, o *options, stdout, stderr io.Writer) int {
		ctx, stop := signal.NotifyContext(ctx, endingSignals()...)
		defer stop()
		home, err := config.Home(os.Getenv)
		var folder *shared.Folder
		if err == nil {
			folder, err = shared.Open(os.Getenv("XDG_RUNTIME_DIR"), home)
		}
		var names []string
		if err == nil {
			names, err = folder.Names()
		}
		if err != nil {
			return fail(stderr, fmt.Errorf("shared: %w", err))
		}
		found, status := 0, 0
		for _, name := range names {
			s, err := f(ctx, folder, name)
			if errors.Is(err, shared.ErrAbsent) {
				continue
			}
			if err != nil {
				status = cmp.Or(status, fail(stderr, fmt.Errorf("shared %s: %w", name, err)))
				continue
			}
			found++
			fmt.Fprintf(stdout, "%s %s: process %d, version %s, %s, %d connected, %d working, since %s, log %s\n",
				words, name, s.PID, s.Version, s.About, s.Clients, s.Working, s.Began.Format(time.DateTime), folder.Log(name))
		}
		if found == 0 && status == 0 {
			fmt.Fprintln(stdout, "no shared server runs")
		}
		return status
	}
}

// sharedLog is the standard error of a shared server, which is the file at a path. A full file
// is copied to the name with .1 and emptied. It is not renamed, because the runtime and the
// approvals page write to the open file. It is safe for concurrent use.
type sharedLog struct {
	path string

	mu sync.Mutex
	f  *os.File
}

// Write implements [io.Writer].
func (l *sharedLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if info, err := l.f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() >= maxSharedLog {
		if text, err := safefile.Read(l.path, 4*maxSharedLog); err == nil {
			_ = safefile.Write(l.path+".1", text, 0o600) // a full disk needs the space of the log
		}
		if err := l.f.Truncate(0); err != nil {
			return 0, err
		}
	}
	return l.f.Write(line)
}
