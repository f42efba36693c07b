package protocol

import (
	"encoding/json"
	"strings"
)

// InputItem is a part of a user's message. Its Type says which field is used, Text for an [InputText].
type InputItem struct {
	Type InputItemType
	Text string
	// ImageURL is the address, often a data URL, of an [InputImage].
	ImageURL string
	// Path is the file of an [InputLocalImage].
	Path string
}

// InputItemType tags an [InputItem].
type InputItemType string

// The kinds of input.
const (
	InputText       InputItemType = "text"
	InputImage      InputItemType = "image"
	InputLocalImage InputItemType = "localImage"
)

// TextInput returns a message of one text.
func TextInput(text string) []InputItem {
	return []InputItem{{Type: InputText, Text: text}}
}

// TextOf returns the texts of a message, one a line.
func TextOf(items []InputItem) string {
	var words []string
	for _, item := range items {
		if item.Type == InputText {
			words = append(words, item.Text)
		}
	}
	return strings.Join(words, "\n")
}

// TurnInput is what starts a turn.
type TurnInput struct {
	Items []InputItem
	// Effort changes the effort for this and later turns; "" leaves it.
	Effort ReasoningEffort
	// OutputSchema is a JSON schema for this turn's last message, which the model may not
	// follow. Nil leaves the form to the model. An engine.Former holds the model to it in Form alone.
	OutputSchema json.RawMessage
	// MaxTokens bounds the input and output tokens of this turn; 0 means no limit. The
	// server interrupts the turn when they are used. An engine that knows the usage of a
	// response before it runs the response's calls does not run them then.
	MaxTokens int64
	// Again says that the turn goes on with the last one, whose check failed or whose answer has another form: MaxTokens
	// and an engine's limits count for both.
	Again bool
	// Key names the turn for Continue, a random text. "" is a turn that no other process continues.
	Key string
	// Continue, unless nil, makes the turn continue the one with Key, whose process has ended, in a
	// conversation that was resumed with [Config.Continues]. The engine's message to the
	// model names the calls without a result, which may have had effects. None of them runs again. Items are for a turn that
	// had not begun there, which begins with them, or fails if they are empty. Continue is
	// called with what a person should know, such as each of these calls. If the turn had
	// ended, its end is reported again. If it cannot be continued, the turn fails and says why.
	Continue func(words string)
}

// TurnContext is the part of a conversation's configuration that holds for a turn, as its file keeps it: the absolute
// folder Cwd, Model, ApprovalPolicy and SandboxPolicy, among others. Every field but Effort has a value.
type TurnContext struct {
	Cwd            string          `json:"cwd"`
	ApprovalPolicy ApprovalPolicy  `json:"approval_policy"`
	SandboxPolicy  SandboxPolicy   `json:"sandbox_policy"`
	Model          string          `json:"model"`
	Effort         ReasoningEffort `json:"effort,omitzero"`
	// Summary is how the reasoning is summarized.
	Summary ReasoningSummary `json:"summary"`
}
