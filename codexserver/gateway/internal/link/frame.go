package link

import (
	"encoding/binary"
	"errors"
	"net/http"
	"regexp"
	"time"

	"github.com/go-json-experiment/json"
)

// kind is the kind of a frame.
type kind byte

const (
	kindHead   kind = 'H' // a [Head], or the head of the answer
	kindBody   kind = 'B' // a part of the body
	kindEnd    kind = 'E' // the end of the body; with a text, the reason why it is not complete
	kindAck    kind = 'A' // the number of parts that the other side has passed on since the last one
	kindAlive  kind = 'K' // nothing
	kindCancel kind = 'C' // the client has left
	kindRefuse kind = 'R' // the request is not carried out
)

const (
	// maxChunk bounds a part of a body, in bytes.
	maxChunk = 32 << 10
	// window is how many parts of a body may be under way.
	window = 16
	// maxHead bounds a head, in bytes. NATS allows 1 MiB by default.
	maxHead = 256 << 10
	// maxReason bounds the reason of an error, in bytes.
	maxReason = 256
	// frameHeader is the length of what precedes the payload of a frame: kind and number.
	frameHeader = 9
)

// frame is a message of an exchange.
type frame struct {
	kind    kind
	number  uint64
	payload []byte
}

var errFrame = errors.New("a message is not a frame")

func parseFrame(data []byte) (frame, error) {
	if len(data) < frameHeader {
		return frame{}, errFrame
	}
	f := frame{kind(data[0]), binary.BigEndian.Uint64(data[1:frameHeader]), data[frameHeader:]}
	limit := 0
	switch f.kind {
	case kindHead:
		limit = maxHead
	case kindBody:
		limit = maxChunk
	case kindEnd, kindRefuse:
		limit = maxReason
	case kindAck:
		limit = 8
		if len(f.payload) != limit {
			return frame{}, errFrame
		}
	case kindAlive, kindCancel:
	default:
		return frame{}, errFrame
	}
	if len(f.payload) > limit || f.kind == kindBody && len(f.payload) == 0 {
		return frame{}, errFrame
	}
	return f, nil
}

func (f frame) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(append(b, byte(f.kind)), f.number)
	return append(b, f.payload...)
}

// Head begins a request.
type Head struct {
	// User is whose worker the request is for. Sender is the principal that sent it: the
	// user, or its approver. Scopes are those of the sender.
	User   string   `json:"user"`
	Sender string   `json:"sender"`
	Scopes []string `json:"scopes"`
	// Epoch is that of the user's lease, as the sender knows it.
	Epoch uint64 `json:"epoch"`

	// The client sets the fields below.

	// Client is the id of the client, and Number increases with each of its requests.
	Client string `json:"client"`
	Number uint64 `json:"number"`
	// Method, URL, Header and Length are of the HTTP request. URL is a path with a query.
	Method string      `json:"method"`
	URL    string      `json:"url"`
	Header http.Header `json:"header"`
	Length int64       `json:"length"`
}

// answerHead begins an answer.
type answerHead struct {
	Status int         `json:"status"`
	Header http.Header `json:"header"`
}

// decodeHead decodes a head strictly.
func decodeHead(payload []byte, head any) error {
	return json.Unmarshal(payload, head, json.RejectUnknownMembers(true))
}

// The subjects begin with a prefix, so that other programs can use the same NATS.
const prefix = "codexmcp."

// serverSubject returns where a server with an id receives the frames of an exchange, or with
// "*" those of all.
func serverSubject(id, exchange string) string { return prefix + "node." + id + ".http." + exchange }

// clientSubject is serverSubject for a client.
func clientSubject(id, exchange string) string { return prefix + "front." + id + "." + exchange }

var idForm = regexp.MustCompile(`^[A-Z2-7]{26}$`)

// validID reports whether a text is a result of [rand.Text]. Only such a text may become
// a part of a subject.
func validID(id string) bool { return idForm.MatchString(id) }

// DefaultHeartbeat is the default of [Options].Heartbeat.
const DefaultHeartbeat = 2 * time.Second
