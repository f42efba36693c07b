package native_test

import (
	"context"
	"fmt"
	"os"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// answers is a host that prints the model's messages and approves nothing.
type answers struct{ engine.DenyAll }

func (answers) Emit(m protocol.EventMsg) {
	if said, ok := m.(protocol.AgentMessage); ok {
		fmt.Println(said.Message)
	}
}

func (a answers) EmitAs(_ string, m protocol.EventMsg) { a.Emit(m) }

// An engine without a server, on a scripted model.
func Example() {
	model := providertest.New(providertest.Say("Nothing to do."))
	defer model.Close()
	home, err := os.MkdirTemp("", "codex-home")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(home)
	e, err := native.New(&native.Options{CodexHome: home, Overrides: map[string]any{
		"model":                          "scripted",
		"model_provider":                 "local",
		"model_providers.local.name":     "local",
		"model_providers.local.base_url": model.BaseURL(),
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	ctx := context.Background()
	c, err := e.Start(ctx, protocol.Config{Cwd: home}, answers{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	if err := c.Turn(ctx, protocol.TurnInput{Items: protocol.TextInput("Tidy up.")}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Nothing to do.
}
