package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Later layers replace keys of earlier ones: the file, the command line, the call.
func ExampleLoad() {
	home, err := os.MkdirTemp("", "home")
	defer os.RemoveAll(home)
	const file = "model = \"from-file\"\napproval_policy = \"never\"\nmodel_verbosity = \"low\"\n"
	if err = errors.Join(err, os.WriteFile(filepath.Join(home, "config.toml"), []byte(file), 0o600)); err != nil {
		fmt.Println(err)
		return
	}
	layers := config.Layers{
		Home:      home,
		Overrides: map[string]any{"model": "from-flag", "model_verbosity": "high"},
		Call:      protocol.Config{Model: "from-call"},
	}
	c, err := config.Load(layers)
	fmt.Println(c.Model, c.Verbosity, c.ApprovalPolicy, err)
	layers.Overrides["model_context_window"] = "big"
	_, err = config.Load(layers)
	fmt.Println(err)
	// Output:
	// from-call high never <nil>
	// -c model_context_window: want an integer, have a string
}
