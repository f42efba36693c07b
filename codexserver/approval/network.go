package approval

import (
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
)

// A Network is a [Subject]: whether a command that runs in the sandbox may reach a host of the network.
type Network struct {
	// CallID is the call of the command. Command is its argv, and Cwd its folder.
	CallID  string
	Command []string
	Cwd     string
	// Hostname is a name in lower case, of at most 100 characters.
	Hostname string
	// Once is true when no approval of the host lasts.
	Once bool
	// NoPerson is why no person is asked, so that only a rule allows the host; "" asks.
	NoPerson string
}

// Facts implements [Action].
func (n Network) Facts(bool) Facts {
	return Facts{Kind: KindHost, Hostname: n.Hostname, Command: n.Command, Cwd: n.Cwd}
}

// Refusal implements [Action].
func (n Network) Refusal() protocol.Refusal {
	return protocol.Refusal{Kind: string(KindHost), What: plain.Short(n.Hostname, plain.MaxName)}
}

// Call implements [Subject].
func (n Network) Call() string { return n.CallID }

// Effect implements [Subject].
func (n Network) Effect() Effect { return Reaches }

// Approver implements [Subject].
func (n Network) Approver() Approver { return Anyone }

// Each implements [Subject].
func (n Network) Each(r *Rules) bool { return decide.CoversHost(r.Hosts.Ask, n.Hostname) }

// Rule implements [Subject].
func (n Network) Rule(r *Rules, each bool) (out elicit.Outcome, decides bool) {
	switch {
	case decide.CoversHost(r.Hosts.Deny, n.Hostname):
		return deniedByRule("a rule of the user denies this host"), true
	case !each && decide.CoversHost(r.Hosts.Allow, n.Hostname):
		return elicit.Outcome{Decision: elicit.Approved, Ruled: true, Detail: "allowed by a rule"}, true
	}
	return out, false
}

// Lasting implements [Subject].
func (n Network) Lasting() Lasting { return Lasting{Hostname: n.Hostname} }

// Unasked implements [Subject].
func (n Network) Unasked() string { return n.NoPerson }

// Complete implements [Subject].
func (n Network) Complete(each bool) Subject {
	n.Once = n.Once || each
	return n
}

// Name implements [Subject].
func (n Network) Name() string { return "the host " + n.Hostname }

// Whole implements [Subject].
func (n Network) Whole() []string { return n.Command }

// Meta implements [Subject].
func (n Network) Meta() map[string]any {
	return map[string]any{"kind": "host", "callId": n.CallID, "host": n.Hostname, "command": n.Command, "cwd": n.Cwd}
}

// Codex implements [Subject].
func (n Network) Codex() *Codex { return nil }

// Event implements [Subject].
func (n Network) Event() protocol.EventMsg { return nil }

// Show implements [Subject].
func (n Network) Show(v View) { v.Message() }

// Question implements [Subject]. The host, which is shown whole, comes first: what the command may send is not bounded.
func (n Network) Question(_, home string) *elicit.Question {
	const means = "What this command can read it can send there."
	const reach = "If approved, this command reaches that host by HTTPS, and stays in the sandbox; " +
		"for the session or always, so does every command in the sandbox."
	shown, hidden := plain.Command(decide.Written(n.Command))
	cut := plain.Clip(shown, plain.CommandHead, plain.CommandTail)
	cwd, hiddenCwd := plain.Path(n.Cwd)
	lines := []string{
		"Allow the network, to the host " + plain.Code(n.Hostname) + "?",
		"It is asked for by " + plain.Code(cut) + " in " + plain.Code(plain.Clip(cwd, plain.PathHead, plain.PathTail)) +
			", which runs in the sandbox.",
	}
	if hidden || hiddenCwd {
		lines = append(lines, plain.Hidden)
	}
	lines = append(lines, means, reach)
	return &elicit.Question{
		Message: strings.Join(lines, "\n"),
		Brief:   networkBrief(&n, means, home),
		Partial: cut != shown,
		Once:    cut != shown || n.Once,
		NotDone: "the host was not reached",
	}
}

// networkBrief builds the question for a client that cuts messages. The host is shown whole there, too, and the
// beginning of the command always: the model chooses the host, and a long one could hide what runs. The longest leaves
// the command a line.
func networkBrief(n *Network, means, home string) *elicit.Brief {
	text, hidden := bare(&Command{Command: n.Command})
	first := "Network, to the host " + n.Hostname + ":"
	if plain.Columns(first) > plain.MaxColumns {
		host := plain.Wrap("Network, for what it reads, to the host " + plain.Code(n.Hostname) + ":")
		shown, _ := briefCode(text, 1)
		return &elicit.Brief{Lines: append(host, shown...), Partial: true} // the folder is not there
	}
	folder, hiddenCwd := briefPath(n.Cwd, home)
	b := Brief(first, text, briefAlso("", hidden || hiddenCwd, []string{"In " + folder + ". " + means})...)
	b.Home, b.Confined = home, first
	return b
}
