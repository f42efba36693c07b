package telemetry

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// The messages of OTLP in its JSON encoding. Ids are hexadecimal digits, 64-bit numbers are
// strings, and enums are numbers.
type (
	wireTraces struct {
		ResourceSpans []wireResourceSpans `json:"resourceSpans"`
	}
	wireResourceSpans struct {
		Resource   wireResource     `json:"resource"`
		ScopeSpans []wireScopeSpans `json:"scopeSpans"`
	}
	wireResource struct {
		Attributes []wireAttribute `json:"attributes"`
	}
	wireScopeSpans struct {
		Scope wireScope  `json:"scope"`
		Spans []wireSpan `json:"spans"`
	}
	wireScope struct {
		Name string `json:"name"`
	}
	wireSpan struct {
		TraceID    string          `json:"traceId"`
		SpanID     string          `json:"spanId"`
		TraceState string          `json:"traceState,omitzero"`
		ParentID   string          `json:"parentSpanId,omitzero"`
		Name       string          `json:"name"`
		Kind       int             `json:"kind"`
		Start      string          `json:"startTimeUnixNano"`
		End        string          `json:"endTimeUnixNano"`
		Attributes []wireAttribute `json:"attributes,omitzero"`
		Status     wireStatus      `json:"status"`
	}
	wireStatus struct {
		Code int `json:"code,omitzero"`
	}
	wireAttribute struct {
		Key   string    `json:"key"`
		Value wireValue `json:"value"`
	}
	wireValue struct {
		String *string `json:"stringValue,omitzero"`
		Int    string  `json:"intValue,omitzero"`
	}
)

// statusError is OTLP's number for [codes.Error].
const statusError = 2

// encode returns the export request for spans, which must share one resource.
func encode(spans []sdktrace.ReadOnlySpan) ([]byte, error) {
	var r wireResourceSpans
	byScope := map[string]int{}
	for _, s := range spans {
		if len(byScope) == 0 {
			r.Resource.Attributes = attributes(s.Resource().Attributes())
		}
		name := s.InstrumentationScope().Name
		i, ok := byScope[name]
		if !ok {
			i = len(r.ScopeSpans)
			byScope[name] = i
			r.ScopeSpans = append(r.ScopeSpans, wireScopeSpans{Scope: wireScope{name}})
		}
		r.ScopeSpans[i].Spans = append(r.ScopeSpans[i].Spans, span(s))
	}
	return json.Marshal(wireTraces{[]wireResourceSpans{r}}, jsontext.AllowInvalidUTF8(true))
}

func span(s sdktrace.ReadOnlySpan) wireSpan {
	c := s.SpanContext()
	w := wireSpan{
		TraceID: c.TraceID().String(), SpanID: c.SpanID().String(), TraceState: c.TraceState().String(),
		Name: s.Name(), Kind: int(s.SpanKind()), Start: nano(s.StartTime()), End: nano(s.EndTime()), Attributes: attributes(s.Attributes()),
	}
	if s.Parent().SpanID().IsValid() {
		w.ParentID = s.Parent().SpanID().String()
	}
	if s.Status().Code == codes.Error {
		w.Status.Code = statusError
	}
	return w
}

func nano(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func attributes(all []attribute.KeyValue) []wireAttribute {
	var list []wireAttribute
	for _, a := range all {
		v := wireValue{}
		if a.Value.Type() == attribute.INT64 {
			v.Int = strconv.FormatInt(a.Value.AsInt64(), 10)
		} else {
			v.String = new(a.Value.String())
		}
		list = append(list, wireAttribute{string(a.Key), v})
	}
	return list
}
