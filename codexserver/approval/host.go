package approval

import (
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
)

// HostQuestion returns the question whether a command in the sandbox may reach a host. The host, which is shown whole,
// comes first: what the command may send is not bounded. A brief question writes home, the person's home folder, as ~.
func HostQuestion(r protocol.HostRequest, home string) *elicit.Question {
	const means = "What this command can read it can send there."
	const reach = "If approved, this command reaches that host by HTTPS, and stays in the sandbox; " +
		"for the session or always, so does every command in the sandbox."
	shown, hidden := plain.Command(decide.Written(r.Command))
	cut := plain.Clip(shown, plain.CommandHead, plain.CommandTail)
	cwd, hiddenCwd := plain.Path(r.Cwd)
	lines := []string{
		"Allow the network, to the host " + plain.Code(r.Host) + "?",
		"It is asked for by " + plain.Code(cut) + " in " + plain.Code(plain.Clip(cwd, plain.PathHead, plain.PathTail)) +
			", which runs in the sandbox.",
	}
	if hidden || hiddenCwd {
		lines = append(lines, plain.Hidden)
	}
	lines = append(lines, means, reach)
	return &elicit.Question{
		Message: strings.Join(lines, "\n"),
		Brief:   hostBrief(&r, means, home),
		Partial: cut != shown,
		Once:    cut != shown || r.Once,
		NotDone: "the host was not reached",
	}
}

// hostBrief builds the question for a client that cuts messages. The host is shown whole there, too, and the beginning of the
// command always: the model chooses the host, and a long one could hide what runs. The longest leaves the command a line.
func hostBrief(r *protocol.HostRequest, means, home string) *elicit.Brief {
	text, hidden := bare(&protocol.ExecApprovalRequest{Command: r.Command})
	first := "Network, to the host " + r.Host + ":"
	if plain.Columns(first) > plain.MaxColumns {
		host := plain.Wrap("Network, for what it reads, to the host " + plain.Code(r.Host) + ":")
		shown, _ := briefCode(text, 1)
		return &elicit.Brief{Lines: append(host, shown...), Partial: true} // the folder is not there
	}
	folder, hiddenCwd := briefPath(r.Cwd, home)
	b := Brief(first, text, briefAlso("", hidden || hiddenCwd, []string{"In " + folder + ". " + means})...)
	b.Home, b.Confined = home, first
	return b
}
