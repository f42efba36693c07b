package turn_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/transcript"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// The turn has the events as values, the log of its thread as
// texts.
func Example() {
	log := transcript.New("") // of one thread
	defer log.Close()
	turn := turn.New(changes.Options{})

	log.Begin("say hello")
	turn.Begin(context.Background(), protocol.SessionConfigured{SessionID: "t", Model: "fake", Cwd: "/work"}, nil)
	_, news := turn.News()
	add := func(m protocol.EventMsg) string {
		_, doing := turn.Add("", log.Add(m), m)
		return doing
	}
	doing := add(protocol.ExecCommandBegin{CallID: "1", Command: []string{"echo", "hello"}, Cwd: "/work"})
	<-news // a command has begun
	fmt.Println(doing)
	add(protocol.ExecCommandEnd{CallID: "1", Stdout: "hello\n", AggregatedOutput: "hello\n"})
	add(protocol.AgentMessage{Message: "I said it."})
	log.End(nil)
	turn.End(nil)

	did := turn.So()
	fmt.Println(did.Status, did.Commands[0].Command, *did.Commands[0].ExitCode)
	output, _, _ := log.Output(0, 0, 1000) // of the last command
	fmt.Printf("%q\n", output.Text)
	transcript, _ := log.Transcript(0, 1000)
	_, said, _ := strings.Cut(transcript.Text, "\n") // after the line with the time
	fmt.Print(said)
	// Output:
	// running echo hello
	// completed echo hello 0
	// "hello\n"
	// user:
	//   say hello
	// command 1: echo hello
	//   in /work
	// command 1 ended: exit code 0 after 0s, 6 bytes of output
	// codex:
	//   I said it.
}
