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
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/shared"
	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/internal/program"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/spf13/cobra"
)

const (
	// sharedName is the name under which this program starts itself as the shared server.
	sharedName = "codex-mcp-shared"
	// sharedIdle is how long a shared server runs without a client and without work.
	sharedIdle = 5 * time.Minute
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
	name, err := c.sharedServer(o)
	if err != nil {
		return nil, err
	}
	wd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	return folder.Connect(ctx, name, engine.Origin{Folder: wd, Environ: os.Environ()}, func() *exec.Cmd {
		return &exec.Cmd{Path: self(), Args: append([]string{sharedName, name}, os.Args[1:]...)}
	})
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

// sharedServer returns the name of the shared server, a sum of what makes another one: the version, the home,
// the flags, codex-mcp.toml, the namespaces of this process, and the variables that the server itself reads, with
// those that config.toml names.
func (c *configuration) sharedServer(o *options) (name string, err error) {
	namespaces, err := shared.Namespaces()
	if err != nil {
		return "", err
	}
	if err := o.makeAbsolute(); err != nil {
		return "", err
	}
	settings, err := safefile.Read(filepath.Join(c.home, config.SettingsFile), maxConfiguration)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	cfg, err := config.Load(config.Layers{Home: c.home, Overrides: c.overrides})
	if err != nil {
		return "", err
	}
	flags := []string{o.engine, o.codex, o.trace, o.folder, o.log.String(), o.logFormat, fmt.Sprint(o.strict)}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q", []any{sharedVersion(self()), c.home, namespaces, append(flags, o.overrides...), settings})
	for _, entry := range slices.Sorted(slices.Values(os.Environ())) {
		name, _, _ := strings.Cut(entry, "=")
		if slices.Contains(cfg.KeyVariables, name) || slices.Contains(serverVariables, strings.ToUpper(name)) {
			fmt.Fprintf(sum, "%q", entry)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// serverVariables are the variables that the server itself reads, besides those that the configuration names.
var serverVariables = []string{
	"PATH", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "CODEX_CA_CERTIFICATE", "SSL_CERT_FILE",
	"SSL_CERT_DIR", "CODEX_BIN",
	"CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORGANIZATION", "OPENAI_PROJECT",
	"AZURE_OPENAI_API_KEY",
}

// makeAbsolute makes the paths of the command line independent of the working folder.
func (o *options) makeAbsolute() (err error) {
	if o.trace != "" {
		o.trace, err = filepath.Abs(o.trace)
	}
	if err == nil && strings.ContainsRune(o.codex, filepath.Separator) {
		o.codex, err = filepath.Abs(o.codex)
	}
	return err
}

// runShared runs the shared server of a name for the command line of the process that started it.
func runShared(ctx context.Context, name string, args []string, stderr io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, endingSignals()...)
	defer stop()
	o, err := parse("codex-mcp", args, stderr)
	if err != nil {
		return err
	}
	o.announcing = linkNever
	c, err := configure(o, os.Getenv, o.logger(stderr))
	if err != nil {
		return err
	}
	folder, err := shared.Open(c.home)
	if err != nil {
		return err
	}
	defer folder.Close()
	c.warn(o, stderr)
	// The folder of the first client may be removed.
	if err := errors.Join(o.makeAbsolute(), os.Chdir(c.home)); err != nil {
		return err
	}
	return c.withServer(ctx, o, func(s *codexserver.Server, e *choice) error {
		server := &shared.Server{Folder: folder, Name: name, Idle: sharedIdle, Logger: c.log}
		server.Status = func() shared.Status {
			status := c.status(e.name)
			status.Working = s.Working()
			return status
		}
		server.Serve = func(ctx context.Context, conn io.ReadWriteCloser, from engine.Origin, left func()) {
			if err := s.ServeFrom(ctx, jsonrpc.Lines(struct{ io.Reader }{conn}, conn, conn), from, left); err != nil {
				c.log.Warn("a client", "error", err)
			}
		}
		if c.page != nil {
			server.Link = c.page.Link
		}
		if err := server.Listen(); err != nil {
			return err
		}
		shared.Started()
		return server.Run(ctx)
	})
}

func (o *options) sharedCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "shared",
		Short: "Show the servers that clients share, and end them",
		Long: `Shows the servers that --shared has started: which clients are connected to each and
since when, and what the turns do that run, also those of clients that have gone.`,
		Args: cobra.NoArgs,
		Run:  o.listShared(shared.Look, "server"),
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "stop",
		Short: "End the shared servers and all their turns",
		Long:  `Ends every shared server. Their turns are interrupted, and their tasks say so.`,
		Args:  cobra.NoArgs,
		Run:   o.listShared(shared.Stop, "ended"),
	})
	return cmd
}

// listShared returns the function of a command that asks every shared server of the user for something,
// and prints what it does.
func (o *options) listShared(want, words string) func(*cobra.Command, []string) {
	list := func(ctx context.Context, stdout, stderr io.Writer) error {
		ctx, stop := signal.NotifyContext(ctx, endingSignals()...)
		defer stop()
		folder, names, err := sockets(shared.Shared)
		if err != nil {
			return fmt.Errorf("shared: %w", err)
		}
		defer folder.Close()
		all, failed := answers(ctx, folder, names, want, stderr)
		for _, s := range all {
			fmt.Fprintf(stdout, "%s %s: process %d, version %s, %s, since %s; log %s\n",
				words, s.Name, s.PID, s.Version, s.About, s.Began.Local().Format(time.DateTime), folder.Log(s.Name))
			for _, client := range s.Clients {
				fmt.Fprintf(stdout, "  a client in %s, process %d, since %s\n", terminal.Row(client.Folder), client.PID,
					client.Since.Local().Format(time.DateTime))
			}
			for _, turn := range s.Working {
				fmt.Fprintln(stdout, "  the turn of", terminal.Row(turn))
			}
		}
		if failed {
			return status(1)
		}
		if len(all) == 0 {
			fmt.Fprintln(stdout, "no shared server runs")
		}
		return nil
	}
	return func(*cobra.Command, []string) { o.run = list }
}

// sockets opens the folder of the user's sockets, and returns those names in it that match.
func sockets(match func(name string) bool) (*shared.Folder, []string, error) {
	home, err := config.Home(os.Getenv)
	if err != nil {
		return nil, nil, err
	}
	folder, err := shared.Open(home)
	if err != nil {
		return nil, nil, err
	}
	names, err := folder.Names()
	if err != nil {
		return nil, nil, errors.Join(err, folder.Close())
	}
	return folder, slices.DeleteFunc(names, func(name string) bool { return !match(name) }), nil
}

// answers asks the processes with these names for something. It returns what those do that still run, the
// oldest first, and whether one failed, which it reports to stderr.
func answers(
	ctx context.Context, folder *shared.Folder, names []string, want string, stderr io.Writer,
) (all []*shared.Status, failed bool) {
	for _, name := range names {
		s, err := folder.Ask(ctx, name, want)
		switch {
		case err == nil:
			all = append(all, s)
		case !errors.Is(err, shared.ErrAbsent):
			failed = true
			exit(stderr, fmt.Errorf("process %s: %w", name, err))
		}
	}
	slices.SortFunc(all, func(a, b *shared.Status) int { return cmp.Or(a.Began.Compare(b.Began), a.PID-b.PID) })
	return all, failed
}
