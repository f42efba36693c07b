package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/codexserver/internal/passkey"
	"github.com/codexmcp/codexmcp/codexserver/page"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func (o *options) passkeyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "passkey [flags]",
		Short: "List, add and remove the passkeys that sign approvals",
		Long: `Lists the passkeys that sign approvals on the page, if approvals.passkey = true is in
codex-mcp.toml: for all servers with the same $CODEX_HOME.`,
		Args: o.noWords,
		RunE: func(*cobra.Command, []string) error { o.run = withPasskeys(listPasskeys); return nil },
	}
	add := &cobra.Command{
		Use:   "add [name]",
		Short: "Register a passkey",
		Long: `Prints a link, at a terminal only, that registers a passkey in your browser once, within
ten minutes. It is for http://localhost, or for approvals.page_origin.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			o.run = withPasskeys(func(ctx context.Context, c *configuration, _ *passkey.Keys, out io.Writer) error {
				return addPasskey(ctx, c, strings.Join(args, " "), out)
			})
			return nil
		},
	}
	remove := &cobra.Command{
		Use:   "remove number",
		Short: "Remove a passkey",
		Long:  `Removes the passkey with this number. Running servers no longer accept it.`,
		Args:  cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			number, err := o.number(args, "passkey", "passkey")
			if err != nil {
				return err
			}
			o.run = withPasskeys(func(_ context.Context, c *configuration, keys *passkey.Keys, out io.Writer) error {
				return removePasskey(c, keys, number, out)
			})
			return nil
		},
	}
	cmd.AddCommand(add, remove)
	return cmd
}

// withPasskeys returns a runner with the passkeys of the home.
func withPasskeys(f func(ctx context.Context, c *configuration, keys *passkey.Keys, out io.Writer) error) runner {
	return func(ctx context.Context, o *options, stdout, stderr io.Writer) int {
		ctx, stop := signal.NotifyContext(ctx, endingSignals()...)
		defer stop()
		c, err := configure(o, os.Getenv, o.logger(stderr))
		if err == nil {
			err = f(ctx, c, passkey.NewKeys(passkey.File(c.home)), stdout)
		}
		if err != nil {
			return fail(stderr, fmt.Errorf("passkey: %w", err))
		}
		return 0
	}
}

// passkeys returns the path of the passkeys for the page, "" if approvals need no signature. It says
// so if there is none that could sign.
func (c *configuration) passkeys(stderr io.Writer) (string, error) {
	if !c.settings.Approvals.Passkey {
		return "", nil
	}
	file := passkey.File(c.home)
	all, err := passkey.NewKeys(file).List()
	if err == nil && len(all) == 0 {
		fmt.Fprintln(stderr, "codex-mcp: warning: nothing can be approved: approvals.passkey is set, and no passkey is registered; codex-mcp passkey add registers one")
	}
	return file, err
}

func listPasskeys(_ context.Context, c *configuration, keys *passkey.Keys, out io.Writer) error {
	all, err := keys.List()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, k := range all {
		kind := "stays on its device"
		if k.Syncable {
			kind = "may be copied to other devices"
		}
		fmt.Fprintf(&b, "%4d  %s\n      for %s, registered %s, %s, %s, key %s\n", k.Number, terminal.Row(k.Name),
			terminal.Row(k.Party), k.At.Local().Format(time.DateTime), k.Algorithm, kind, k.Fingerprint())
	}
	if len(all) == 0 {
		fmt.Fprintln(&b, "no passkeys are registered")
	}
	if !c.settings.Approvals.Passkey {
		fmt.Fprintln(&b, unrequired)
	}
	_, err = out.Write(b.Bytes())
	return err
}

const unrequired = "Approvals need no passkey: that needs approvals.passkey = true in codex-mcp.toml."

// registrationTime is how long a link to register a passkey works.
const registrationTime = 10 * time.Minute

// addPasskey registers a passkey on a page of its own, which has no questions.
func addPasskey(ctx context.Context, c *configuration, name string, out io.Writer) error {
	if f, ok := out.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return errNoTerminal
	}
	a := &c.settings.Approvals
	o := &page.Options{Port: a.PagePort, Origin: a.PageOrigin, Passkeys: passkey.File(c.home)}
	p, err := page.Listen(o)
	if errors.Is(err, syscall.EADDRINUSE) {
		if a.PageOrigin != "" {
			return fmt.Errorf("%w; the link needs approvals.page_port, to which the proxy connects: end the server that uses it", err)
		}
		o.Port = 0 // a passkey of localhost is for all ports
		p, err = page.Listen(o)
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, registrationTime)
	defer cancel()
	party, err := p.RegisterPasskey(ctx, name, func(link string) {
		fmt.Fprintf(out, "%s\nIt registers a passkey once, within ten minutes. Who has it can register one that decides for you.\n", terminal.Row(link))
	})
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("no passkey was registered in time")
	}
	if err = errors.Join(err, p.Close()); err != nil {
		return err
	}
	fmt.Fprintf(out, "registered a passkey for %s\n", party)
	if !a.Passkey {
		fmt.Fprintln(out, unrequired)
	}
	return nil
}

func removePasskey(c *configuration, keys *passkey.Keys, number int, out io.Writer) error {
	removed, left, err := keys.Remove(number)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "removed passkey %d, %s, for %s\n", removed.Number, terminal.Row(removed.Name), terminal.Row(removed.Party))
	if c.settings.Approvals.Passkey && !slices.ContainsFunc(left, func(k passkey.Key) bool { return k.Party == removed.Party }) {
		fmt.Fprintf(out, "It was the last one for %s: nothing can be approved there, until codex-mcp passkey add registers another one.\n", terminal.Row(removed.Party))
	}
	return nil
}
