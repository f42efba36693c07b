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
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/shared"
	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/internal/program"
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
	folder, err := shared.Open(c.home)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	name, err := c.sharedName(o)
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

// sharedVersion returns the version of this program. Builds without a release differ by
// the time of their file.
func sharedVersion(path string) string {
	v := program.Version()
	if info, err := os.Stat(path); err == nil && (v == "dev" || strings.ContainsAny(v, "-+")) {
		v += " " + info.ModTime().UTC().Format(time.RFC3339Nano)
	}
	return v
}

// sharedName returns the name of the shared server: a sum of everything that would make
// another server of it.
func (c *configuration) sharedName(o *options) (string, error) {
	all, err := c.traits(o)
	sum := sha256.New()
	for _, t := range all {
		fmt.Fprintf(sum, "%d:%s%d:%s", len(t.name), t.name, len(t.value), t.value)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), err
}

// trait is one of the things in which shared servers differ.
type trait struct{ name, value string }

// traits returns what makes another server: the home, the flags, codex-mcp.toml, the namespaces
// of this process, and the variables that the server itself reads, with those that config.toml names.
func (c *configuration) traits(o *options) ([]trait, error) {
	namespaces, err := shared.Namespaces()
	if err != nil {
		return nil, err
	}
	if err := o.makeAbsolute(); err != nil {
		return nil, err
	}
	settings, err := safefile.Read(filepath.Join(c.home, config.SettingsFile), maxConfiguration)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	cfg, err := config.Load(config.Layers{Home: c.home, Overrides: c.overrides})
	if err != nil {
		return nil, err
	}
	flags := []string{o.engine, o.codex, o.trace, o.folder, o.log.String(), o.logFormat, fmt.Sprint(o.strict), strings.Join(o.overrides, "\x00")}
	all := []trait{
		{"$CODEX_HOME", c.home}, {"the namespaces or the sandbox", namespaces}, {"the flags", fmt.Sprintf("%q", flags)}, {config.SettingsFile, string(settings)},
	}
	named, environ := cfg.KeyVariables(), slices.Sorted(slices.Values(os.Environ()))
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if slices.Contains(named, name) || slices.Contains(serverVariables(), strings.ToUpper(name)) {
			all = append(all, trait{name, value})
		}
	}
	return all, nil
}

// sums returns the traits by name, with a sum of each value that tells no value: it has 32 bits.
func sums(all []trait) map[string]string {
	short := map[string]string{}
	for _, t := range all {
		sum := sha256.Sum256([]byte(t.value))
		short[t.name] = hex.EncodeToString(sum[:4])
	}
	return short
}

// differences returns the names in which two servers differ, sorted.
func differences(a, b map[string]string) (names []string) {
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if a[name] != b[name] {
			names = append(names, name)
		}
	}
	return names
}

// serverVariables returns the names of the variables that the server, git in the server, and
// Codex read, besides those that the configuration names. GIT_CONFIG_COUNT, which some hosts
// set, is missing: git in the server does not get it.
func serverVariables() []string {
	return []string{
		"OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORGANIZATION", "OPENAI_PROJECT", "AZURE_OPENAI_API_KEY",
		"CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "CODEX_BIN", "CODEX_HOME", "RUST_LOG",
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
		"CODEX_CA_CERTIFICATE", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"HOME", "PATH", "SHELL", "TMPDIR", "XDG_CONFIG_HOME",
		"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_PARAMETERS", "GIT_DIR", "GIT_COMMON_DIR",
	}
}

// makeAbsolute makes the paths of the command line independent of the working folder.
func (o *options) makeAbsolute() error {
	paths := []*string{&o.trace}
	if strings.ContainsRune(o.codex, filepath.Separator) {
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
func runShared(ctx context.Context, args []string, stderr io.Writer) int {
	defer program.SurviveBrokenPipes()()
	ctx, stop := signal.NotifyContext(ctx, endingSignals()...)
	defer stop()
	o, err := parse("codex-mcp", args, stderr)
	if err == nil {
		err = serveShared(ctx, o)
	}
	if err != nil {
		return fail(stderr, err)
	}
	return 0
}

func serveShared(ctx context.Context, o *options) error {
	home, err := config.Home(os.Getenv)
	if err != nil {
		return err
	}
	l, folder, name, err := shared.Listener(home)
	if err != nil {
		return err
	}
	defer l.Close()
	defer folder.Close()
	if err := shared.Adopt(); err != nil {
		return err
	}
	if err := o.makeAbsolute(); err != nil {
		return err
	}
	o.announcing = linkNever
	stderr := &sharedLog{f: os.Stderr, path: folder.Log(name)}
	c, err := configure(o, os.Getenv, o.logger(stderr))
	if err != nil {
		return err
	}
	c.warn(o, stderr)
	traits, err := c.traits(o)
	if err != nil {
		return err
	}
	// The folder of the first client may be removed.
	if err := os.Chdir(c.home); err != nil {
		return err
	}
	e, err := choose(ctx, o, c)
	if err != nil {
		return err
	}
	c.log.Info("engine", "name", e.name, "reason", e.reason)
	server := &shared.Server{
		Folder: folder, Name: name, Version: sharedVersion(self()), About: "engine " + e.name, Traits: sums(traits), Idle: sharedIdle, Logger: c.log,
	}
	defer server.Close() // after the engine, whose processes may write in the home until then
	err = c.withServer(o, e, func(s *codexserver.Server) error {
		server.Working = s.Working
		server.Serve = func(ctx context.Context, conn io.ReadWriteCloser, from shared.Origin, left func()) {
			t := jsonrpc.Lines(struct{ io.Reader }{conn}, conn, conn)
			if err := s.ServeFrom(ctx, t, engine.Origin(from), left); err != nil {
				c.log.Warn("a client", "error", err)
			}
		}
		return server.Run(ctx, l)
	})
	return errors.Join(err, e.Close())
}

// withShared returns a runner that calls f for each shared server of the user that runs.
func withShared(f func(ctx context.Context, folder *shared.Folder, name string) (*shared.Status, error), words string) runner {
	return func(ctx context.Context, stdout, stderr io.Writer) int {
		ctx, stop := signal.NotifyContext(ctx, endingSignals()...)
		defer stop()
		home, err := config.Home(os.Getenv)
		var folder *shared.Folder
		if err == nil {
			folder, err = shared.Open(home)
		}
		var names []string
		if err == nil {
			defer folder.Close()
			names, err = folder.Names()
		}
		if err != nil {
			return fail(stderr, fmt.Errorf("shared: %w", err))
		}
		found, status := 0, 0
		var before []*shared.Status
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
			fmt.Fprintf(stdout, "%s %s: process %d, version %s, %s, since %s; %d with a turn that runs; log %s\n",
				words, name, s.PID, s.Version, s.About, s.Began.Local().Format(time.DateTime), s.Working, folder.Log(name))
			for _, client := range s.Clients {
				fmt.Fprintf(stdout, "  a client in %s, process %d, since %s\n", terminal.Row(client.Folder), client.PID, client.Since.Local().Format(time.DateTime))
			}
			for _, other := range before {
				if names := differences(other.Traits, s.Traits); len(other.Traits) > 0 && len(s.Traits) > 0 && len(names) > 0 {
					fmt.Fprintf(stdout, "  differs from %s in %s\n", other.Name, strings.Join(names, ", "))
				}
			}
			before = append(before, s)
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
