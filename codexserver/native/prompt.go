package native

import (
	_ "embed" // for the prompt
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
)

// PromptVersion names the instructions that the engine gives to models. Another
// text has another version.
const PromptVersion = "v1"

//go:embed prompts/v1.md
var prompt string

// instructions are what the model is told first: the caller's, those of a file
// that the configuration names, or ours.
func instructions(cfg *config.Config) (string, error) {
	if cfg.BaseInstructions != nil {
		return *cfg.BaseInstructions, nil
	}
	if cfg.InstructionsFile == "" {
		return prompt, nil
	}
	path := cfg.InstructionsFile
	if !filepath.IsAbs(path) {
		path = filepath.Join(cfg.Cwd, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("model_instructions_file: %w", err)
	}
	trimmed := strings.TrimSpace(strings.ToValidUTF8(string(text), "\uFFFD"))
	if trimmed == "" {
		return "", fmt.Errorf("model_instructions_file: %s is empty", path)
	}
	return trimmed, nil
}
