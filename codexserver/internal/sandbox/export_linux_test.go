//go:build amd64 || arm64

package sandbox

var (
	OpenName   = openName
	PinName    = pinName
	PinOpened  = pinOpened
	ErrNowhere = errNowhere
)
