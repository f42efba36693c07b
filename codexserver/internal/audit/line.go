package audit

import (
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Effect is the kind of a line that is not a decision.
type Effect string

// The kinds.
const (
	Begins  Effect = "begins"
	Ends    Effect = "ends"
	Refused Effect = "refused"
	Changed Effect = "changed"
)

// Line is one line of the record. Its members are in the order of the file.
type Line struct {
	// Effect is "" for a decision.
	Effect    Effect    `json:"effect,omitzero"`
	Time      time.Time `json:"time"`
	Thread    string    `json:"threadId"`
	Principal string    `json:"principal,omitzero"`

	// Of a decision.
	Question  jsontext.Value `json:"question,omitzero"`
	Decision  string         `json:"decision,omitzero"`
	By        string         `json:"by,omitzero"`
	Approver  string         `json:"approver,omitzero"`
	Rule      int            `json:"rule,omitzero"`
	RuleWords string         `json:"ruleWords,omitzero"`
	Reason    string         `json:"reason,omitzero"`
	Feedback  string         `json:"feedback,omitzero"`
	Detail    string         `json:"detail,omitzero"`
	Automatic string         `json:"automatic,omitzero"`
	// Waited is how long the question was open, in milliseconds.
	Waited int64 `json:"waitedMs,omitzero"`
	// Covers is what the approval depends on.
	Covers *Covers `json:"covers,omitempty"`

	// ID identifies a decision or a beginning.
	ID string `json:"id,omitzero"`
	// Missed is how many lines of this server could not be written before this one.
	Missed int `json:"missed,omitzero"`

	// Of a beginning and a refusal. DecidedBy is the id of the decision; "" means that nobody was asked.
	Turn      string          `json:"turnId,omitzero"`
	Call      string          `json:"callId,omitzero"`
	Kind      string          `json:"kind,omitzero"` // command, patch or tool
	DecidedBy string          `json:"decidedBy,omitzero"`
	Command   []string        `json:"command,omitzero"`
	Cwd       string          `json:"cwd,omitzero"`
	Tool      string          `json:"tool,omitzero"`
	Sum       string          `json:"sum,omitzero"` // of a command or arguments that are not shown
	Basis     *protocol.Basis `json:"basis,omitzero"`

	// Of an end. Of is the id of the beginning.
	Of       string `json:"of,omitzero"`
	Exit     *int   `json:"exit,omitzero"`
	Took     int64  `json:"tookMs,omitzero"`
	Words    string `json:"words,omitzero"`
	Files    []File `json:"files,omitzero"`
	MoreFile int    `json:"moreFiles,omitzero"` // that are not listed
	// Diff is of a patch that nobody was asked about, or of a turn.
	Diff string `json:"diff,omitzero"`

	Chain *Link  `json:"chain,omitzero"`
	Hash  string `json:"hash,omitzero"`
}

// Covers is what an approval depends on, as the rules see it.
type Covers struct {
	// Content is the sum of what a command names, and Unasked that of all that it starts and reads.
	Content string `json:"content,omitzero"`
	Unasked string `json:"unasked,omitzero"`
	Setup   string `json:"setup,omitzero"`
	// Program is the program that starts.
	Program string `json:"program,omitzero"`

	Judged      []string `json:"judged,omitzero"`
	Confinable  bool     `json:"confinable,omitzero"`
	Replaceable bool     `json:"replaceable,omitzero"`
	Placed      bool     `json:"placed,omitzero"`
	Human       bool     `json:"human,omitzero"`
	// Confined is true if the approval is only for the sandbox.
	Confined bool `json:"confined,omitzero"`
	// Kept is true if a rule approved that a person accepted before.
	Kept bool `json:"kept,omitzero"`
	// Basis is what the policy knew that asked.
	Basis *protocol.Basis `json:"basis,omitzero"`
}

// File is a file that an effect has changed.
type File struct {
	Path string `json:"path"`
	// Kind is how it was changed.
	Kind string `json:"kind,omitzero"`
	// Sum is the SHA-256 of its content, or the reason why there is none.
	Sum string `json:"sha256"`
}

// Approves reports whether the line is a decision that approves.
func (l *Line) Approves() bool {
	switch l.Decision {
	case "approved", "approved_for_session", "approved_always":
		return true
	}
	return false
}

// Append appends the line as JSON, without its end.
func (l *Line) Append(b []byte) ([]byte, error) {
	text, err := json.Marshal(l, jsontext.AllowInvalidUTF8(true))
	return append(b, text...), err
}

// Parse reads a line. Strict refuses members that no line has.
func Parse(text []byte, strict bool) (l Line, err error) {
	err = json.Unmarshal(text, &l, json.RejectUnknownMembers(strict), jsontext.AllowInvalidUTF8(true))
	return l, err
}
