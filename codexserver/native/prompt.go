package native

import (
	_ "embed" // for the prompt
	"fmt"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

//go:embed prompts/v1.md
var prompt string

// filesPrompt is the section about tools of a conversation with the file tools.
//
//go:embed prompts/files.md
var filesPrompt string

// builtIn returns the built-in instructions, for the file tools or for Codex's.
func builtIn(files bool) string {
	if !files {
		return prompt
	}
	before, rest, _ := strings.Cut(prompt, "# Tools\n")
	_, after, _ := strings.Cut(rest, "# Permission\n")
	return strings.Replace(before, "Change files with apply_patch.", "Change files with edit and write.", 1) +
		filesPrompt + "# Permission\n" + after
}

// forShell returns the built-in instructions for the shell that runs lines.
func forShell(text string, shell []string) string {
	if shell[0] == "bash" {
		return text
	}
	return strings.ReplaceAll(text, `["bash", "-lc", "…"]`, `["`+strings.Join(shell, `", "`)+`", "…"]`)
}

// maxInstructions bounds model_instructions_file, in bytes.
const maxInstructions = 1 << 20

// instructions returns the model's instructions: the caller's, those of the configured
// file, or the built-in ones for its tools and the shell that runs lines.
func instructions(cfg *config.Config, files bool, shell []string) (string, error) {
	if cfg.BaseInstructions != nil {
		return *cfg.BaseInstructions, nil
	}
	if cfg.InstructionsFile == "" {
		return forShell(builtIn(files), shell), nil
	}
	path := cfg.InstructionsFile
	if !filepath.IsAbs(path) {
		path = filepath.Join(cfg.Cwd, path)
	}
	text, err := readInstructions(cfg, path)
	if err != nil {
		return "", fmt.Errorf("model_instructions_file: %w", err)
	}
	trimmed := strings.TrimSpace(strings.ToValidUTF8(string(text), "\uFFFD"))
	if trimmed == "" {
		return "", fmt.Errorf("model_instructions_file: %s is empty; write the instructions there, or remove the key "+
			"for the built-in ones", path)
	}
	return trimmed, nil
}

// readInstructions reads the file with the model's instructions. The user chose the path.
// A path in the repository must not lead out of it, since the repository can hold links.
func readInstructions(cfg *config.Config, path string) ([]byte, error) {
	bound := cfg.Cwd
	if root := git.Root(cfg.Cwd); root != "" {
		bound = root
	}
	path = filepath.Clean(path)
	open := safefile.Open
	if paths.Below(path, bound) {
		open = func(path string) (*safefile.File, error) { return openWithin(bound, path) }
	}
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := permitted(cfg).CheckFile(f); err != nil {
		return nil, err
	}
	return f.ReadAll(maxInstructions)
}
