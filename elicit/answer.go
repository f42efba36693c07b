package elicit

import (
	"cmp"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/codexmcp/codexmcp/internal/outputschema"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/go-json-experiment/json/jsontext"
)

// Read reads the result of q, an elicitation/create request.
//
// MCP's action comes first. A decision in the content can refine it. So can a decision
// next to the action, which Codex's own server demanded and its clients therefore send.
// The decisions are approved, approved_for_session, approved_always, denied and abort. In the
// content, other spellings of all but approved_always count too (approve, no, a boolean named
// approved). approved_always counts only in the content, and only if the question offers it.
//
//	answer                                      decision
//	accept, alone or with approved              approved
//	accept with one of the other decisions      that one
//	accept with any other decision              denied, not understood
//	accept with approved_always, not offered    denied, not understood
//	accept, content against Question.Schema     denied, not understood
//	decline                                     denied, the turn continues
//	cancel                                      abort, the turn ends (OnCancel)
//	another action                              denied, not understood
//	{"decision": …} and no action               that one, in its exact spelling;
//	                                            in inputResponses not understood
//	parts that contradict each other            the most restrictive of them
//	duplicate members, {"Action": …}            denied, not understood
//	neither action nor decision, not an object  denied, not understood
//	an error                                    denied (OnError)
//	none: the client cannot be asked            denied (OnUnsupported)
//	none in time                                denied (OnTimeout)
//	none before the turn ended, connection lost abort
//
// If q.Once is set, an approval for the session counts as a plain approval.
func (q *Question) Read(result json.RawMessage, o *Options) Outcome {
	out := q.read(result, o)
	if out.Decision == ApprovedAlways && q.Always == nil {
		return q.unread("a lasting rule, which was not offered")
	}
	if q.Schema != nil && out.Decision.Approves() {
		var err error
		if out.Values, err = q.values(result); err != nil {
			return q.unread(err.Error())
		}
	}
	return q.limit(out)
}

// values returns what was entered in the form.
func (q *Question) values(result json.RawMessage) (values map[string]any, err error) {
	var answer struct {
		Content jsontext.Value `json:"content"`
	}
	if err := unmarshal(result, &answer); err != nil {
		return nil, errSyntax
	}
	if answer.Content.Kind() != '{' {
		answer.Content = jsontext.Value("{}")
	}
	form, err := outputschema.Compile(q.Schema)
	if err != nil {
		return nil, errors.New("the form has a faulty schema")
	}
	if _, err := form.Check(string(answer.Content)); err != nil {
		return nil, errors.New("the content does not follow the form")
	}
	return values, unmarshal(answer.Content, &values)
}

// ReadInputResponse reads the answer to q: the raw value in inputResponses under the key of
// the InputRequest. It decides as Read does, except that the flat {"decision": …} never
// counts, whatever o says: no server asks a client of this version for it.
//
// The caller checks the rest: the question was asked in a result and is still open, it is
// answered once, and the repeated call has the tool and the arguments of the first. A
// missing key means that there is no answer yet: ask again.
func (q *Question) ReadInputResponse(response json.RawMessage, o *Options) Outcome {
	modern := Options{}
	if o != nil {
		modern = *o
	}
	modern.NoLegacyFlat = true
	return q.Read(response, &modern)
}

// unread returns the outcome of an answer that cannot be read for certain.
func (q *Question) unread(detail string) Outcome {
	return Outcome{
		Decision: Denied,
		Reason:   ReasonNotUnderstood,
		Detail:   q.answer() + " not understood: " + detail,
		Level:    slog.LevelWarn,
		model:    "the " + q.answer() + " was not understood",
	}
}

func (q *Question) read(result json.RawMessage, o *Options) Outcome {
	answer, err := parse(result)
	if err != nil {
		return q.unread(err.Error())
	}
	opt, top, content := o.resolved(), answer.top, answer.content
	switch {
	case answer.action == "" && !top.cast:
		return q.unread("no action or decision in " + answer.keys)
	case answer.action == "" && opt.NoLegacyFlat:
		return q.unread("a flat answer, which the options refuse: " + answer.keys)
	case answer.action == "", answer.action == "accept":
		vote := top.and(content)
		if vote.unread && vote.decision == Denied {
			return q.unread("an unknown decision in " + answer.keys)
		}
		return answer.decided(q, vote, cmp.Or(opt.Stopped, opt.Who+" chose to abort the turn"))
	case answer.action == "decline", answer.action == "cancel":
		out := Outcome{
			Decision: Denied,
			Reason:   ReasonDeclined,
			Feedback: answer.feedback,
			Detail:   "declined by the client",
			model:    declinedWords(answer.feedback),
		}
		if answer.action == "cancel" {
			out = refuse(opt.OnCancel, Outcome{
				Reason: ReasonCancelled,
				Detail: "cancelled by " + opt.Who,
				model:  opt.Who + " cancelled the " + q.request(),
			})
		}
		if top.approves() || content.approves() {
			out.Detail += ", although " + answer.keys + " has an approving decision"
			out.Level = slog.LevelWarn
		}
		return out
	}
	return q.unread("an unknown action in " + answer.keys)
}

// legacyFlat begins the detail of a flat answer that counts.
const legacyFlat = "legacy flat "

// decided turns a readable vote into an outcome. If no vote was cast, the action is accept
// alone, which approves. Stopped are the words for an answer that ends the turn.
func (a *answer) decided(q *Question, v vote, stopped string) Outcome {
	out, yes := Outcome{Decision: v.decision}, "approved by the client"
	if q.isForm() {
		yes = "answered by the client"
	}
	switch {
	case v.split:
		out.Level, out.Detail = slog.LevelWarn,
			"contradictory "+q.answer()+", the most restrictive part counts: "+a.keys
	case !v.cast:
		out.Decision, out.Level, out.Detail = Approved, slog.LevelDebug, yes
	case a.action == "":
		out.Detail = legacyFlat + q.answer()
	case a.top.cast:
		out.Detail = q.answer() + " with a decision next to the action"
	case v.decision == Approved:
		out.Level, out.Detail = slog.LevelDebug, yes
	default:
		out.Detail = "answered by the client: " + string(v.decision)
	}
	switch out.Decision {
	case Denied:
		out.Reason, out.Feedback, out.model = ReasonDeclined, a.feedback, declinedWords(a.feedback)
	case Abort:
		out.Reason, out.Feedback, out.model = ReasonCancelled, a.feedback, stopped
	}
	return out
}

func declinedWords(feedback string) string {
	if feedback == "" {
		return "declined"
	}
	return "declined: " + feedback
}

// An answer holds the parts of a result that matter for the decision.
type answer struct {
	action   string // "" if absent, "?" if not a string
	top      vote   // the decision next to action
	content  vote   // what content says
	feedback string
	keys     string // the members, for the log
}

// A vote is the decision in one part of an answer.
type vote struct {
	cast     bool     // there is a decision
	decision Decision // Denied if it could not be read
	unread   bool     // some of it could not be read
	split    bool     // its parts disagree
}

func (v vote) approves() bool { return v.cast && v.decision.Approves() }

// and joins two votes. It is associative and commutative.
func (v vote) and(w vote) vote {
	switch {
	case !v.cast:
		return w
	case !w.cast:
		return v
	}
	stricter := v.decision
	if w.decision.Stricter(stricter) {
		stricter = w.decision
	}
	return vote{
		cast:     true,
		decision: stricter,
		unread:   v.unread || w.unread,
		split:    v.split || w.split || v.decision != w.decision,
	}
}

var (
	unreadable = vote{cast: true, decision: Denied, unread: true}

	errNotObject = errors.New("not an object")
	errDuplicate = errors.New("a duplicate member")
	errSyntax    = errors.New("not valid JSON in UTF-8")
)

// parse reads a result strictly, as one JSON object in valid UTF-8. It refuses duplicate
// members at any depth, and members that differ from ours only by case, which a laxer
// reader might take for ours.
func parse(result json.RawMessage) (*answer, error) {
	top, err := object(jsontext.Value(result))
	if err != nil {
		return nil, err
	}
	a := &answer{keys: names(top)}
	if otherCase(top) {
		return nil, errors.New("a member that differs only by case in " + a.keys)
	}
	if action, ok := top["action"]; ok {
		if a.action, ok = text(action); !ok || a.action == "" {
			a.action = "?"
		}
	}
	if decision, ok := top["decision"]; ok {
		a.top = exact(decision)
	}
	content, ok := top["content"]
	if !ok || content.Kind() == 'n' {
		return a, nil
	}
	members, err := object(content)
	if err != nil {
		a.content = unreadable
		return a, nil
	}
	a.keys += " content " + names(members)
	if otherCase(members) {
		return nil, errors.New("a member that differs only by case in " + a.keys)
	}
	for name, value := range members {
		a.content = a.content.and(voteOf(name, value))
	}
	if feedback, ok := text(members["feedback"]); ok {
		a.feedback = plain.Clip(strings.TrimSpace(feedback), 2000, 0)
	}
	return a, nil
}

// object returns the members of a JSON object.
func object(value jsontext.Value) (map[string]jsontext.Value, error) {
	if value.Kind() != '{' {
		return nil, errNotObject
	}
	var members map[string]jsontext.Value
	switch err := unmarshal(value, &members); {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return nil, errDuplicate
	case err != nil:
		return nil, errSyntax
	}
	return members, nil
}

// otherCase reports whether a member differs only by case from one that counts.
func otherCase(members map[string]jsontext.Value) bool {
	for name := range members {
		for _, ours := range []string{"action", "content", "decision"} {
			if name != ours && strings.EqualFold(name, ours) {
				return true
			}
		}
	}
	return false
}

// flags are the names of booleans that hosts use for a confirmation.
var flags = []string{"approved", "approve", "confirm", "confirmed", "allow", "allowed"}

// voteOf reads one member of content.
func voteOf(name string, value jsontext.Value) vote {
	if name == "decision" {
		word, ok := text(value)
		if !ok {
			return unreadable
		}
		return spelled(word)
	}
	if !slices.ContainsFunc(flags, func(flag string) bool { return strings.EqualFold(flag, name) }) {
		return vote{}
	}
	switch value.Kind() {
	case 't':
		return vote{cast: true, decision: Approved}
	case 'f':
		return vote{cast: true, decision: Denied}
	}
	return unreadable
}

// exact reads a decision in its exact spelling.
func exact(value jsontext.Value) vote {
	word, _ := text(value)
	if d := Decision(word); d.Valid() && d != ApprovedAlways { // which only a form offers
		return vote{cast: true, decision: d}
	}
	return unreadable
}

// spelled reads a decision in the spellings that forms and their hosts use.
func spelled(word string) vote {
	word = strings.Trim(word, " \t\r\n")
	if strings.ContainsFunc(word, func(r rune) bool { return r > '~' }) {
		return unreadable // because ToLower turns some letters outside ASCII into ASCII
	}
	vote := vote{cast: true}
	if Decision(word) == ApprovedAlways {
		vote.decision = ApprovedAlways
		return vote
	}
	switch strings.ToLower(word) {
	case "approved", "accept", "allow", "yes", "approve":
		vote.decision = Approved
	case "approved_for_session", "approved-for-session", "approvedforsession", "acceptforsession":
		vote.decision = ApprovedForSession
	case "denied", "deny", "decline", "no", "reject":
		vote.decision = Denied
	case "abort", "cancel":
		vote.decision = Abort
	default:
		return unreadable
	}
	return vote
}

// text returns the string of a valid JSON value, and whether the value is a string.
func text(value jsontext.Value) (string, bool) {
	if value.Kind() != '"' {
		return "", false
	}
	s, err := jsontext.AppendUnquote(nil, value)
	return string(s), err == nil
}

// names lists the members of an object for the log.
func names(members map[string]jsontext.Value) string {
	const most = 12
	var list []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		list = append(list, strconv.QuoteToASCII(plain.Clip(name, 40, 0)))
	}
	if n := len(list); n > most {
		list = append(list[:most], strconv.Itoa(n-most)+" more")
	}
	return "{" + strings.Join(list, ", ") + "}"
}
