package tool

import (
	"context"
	"errors"
	"github.com/codexmcp/codexmcp/codexserver/approval"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/internal/hosts"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// unasked is why nobody is asked about a host, by the policy or because nobody can be.
const unasked = `nobody can be asked here for approvals.hosts, so only a rule such as {host = "…"} in ` +
	`approvals.allow lets a command reach it`

// maxNotes is how many refused hosts the model reads about.
const maxNotes = 10

// network is the network of a command by the host.
type network struct {
	*hosts.Network
	confined *box.Hosts
	end      context.CancelCauseFunc // of the command
}

// onHosts gives a command in the sandbox c its network by the host, nil if it has none. The command runs with the
// context.
func (r attempt) onHosts(ctx context.Context, c Confinement, spec *run.Spec) (context.Context, *network) {
	proxy := r.turn.box.options.Hosts
	if proxy == nil || c == nil || r.turn.SandboxPolicy.Mode != protocol.SandboxWorkspaceWrite {
		return ctx, nil
	}
	confined := c.Hosts()
	if confined == nil {
		return ctx, nil
	}
	ctx, end := context.WithCancelCause(ctx)
	n := proxy.Network(ctx, func(asking context.Context, hostname string) string {
		return r.approveHost(asking, hostname, end)
	})
	confined.Serve, spec.Confinement, spec.Env = n.Serve, confined, confined.Environ(r.env)
	return ctx, &network{n, confined, end}
}

// online reports whether the command leaves the sandbox for the network, as far as its words and the command before it
// say.
func (r attempt) online() bool { return r.turn.box.offline || decide.Mentions(downloads, r.Command) }

// downloads are the beginnings of commands that seldom work without the network.
var downloads = [][]string{
	{"npm"}, {"npx"}, {"pnpm"}, {"yarn"}, {"bun"}, {"pip"}, {"pip3"}, {"uv"}, {"poetry"}, {"cargo"}, {"gem"},
	{"bundle"}, {"composer"}, {"gh"},
	{"curl"}, {"wget"}, {"go", "get"}, {"go", "install"}, {"go", "mod"}, {"git", "clone"}, {"git", "fetch"},
	{"git", "pull"}, {"git", "push"},
}

// approveHost asks whether the command may reach a host, "" if so, and ends the turn if that is the answer. It is
// called for several hosts at the same time.
func (r attempt) approveHost(
	ctx context.Context, hostname string, end context.CancelCauseFunc,
) (refusal string) {
	t := r.turn
	if _, known := t.box.reached.Load(hostname); known {
		return ""
	}
	if domain := t.box.options.Domain; domain != nil {
		if allowed, known := domain(hostname); known && allowed {
			return ""
		} else if known {
			return "denied by the profile of permissions in config.toml"
		}
	}
	asked := approval.Network{CallID: r.id, Command: r.Command, Cwd: r.dir, Hostname: hostname}
	if t.ApprovalPolicy == protocol.ApprovalNever {
		asked.NoPerson = unasked
	}
	out := t.Host.Ask(ctx, asked)
	switch {
	case out.Decision == elicit.ApprovedForSession:
		t.box.reached.Store(hostname, true)
		return ""
	case out.Decision.Approves():
		return ""
	case out.Decision == elicit.Abort && ctx.Err() == nil:
		end(&engine.AbortError{Reason: protocol.AbortInterrupted, Cause: errors.New(out.ForModel())})
	case out.Reason == elicit.ReasonUnsupported:
		return unasked
	}
	return out.ForModel()
}

// close ends the network of a command that has ended. It reports the hosts that were refused without a question, and
// returns those that the command has reached, and the words for the model about those that it has not.
func (n *network) close(r attempt) (used []string, refused string) {
	if n == nil {
		return nil, ""
	}
	n.end(nil)
	n.confined.Close()
	var notes []string
	for _, a := range n.Close() {
		if a.Reached {
			used = append(used, a.Host)
		}
		if a.Why != "" {
			notes = append(notes, a.Host+" was refused: "+a.Why)
		}
		if a.Why != "" && !a.Decided { // a decision has been reported
			r.turn.refuse(protocol.Refused{Hostname: a.Host, Cwd: r.dir, Reason: a.Why, CallID: r.id})
		}
	}
	return used, few(notes, maxNotes)
}
