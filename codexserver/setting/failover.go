package setting

import "fmt"

// Failover says who answers for the native engine when its provider refuses: at a usage limit, an overload or a
// refused key, and never because of what a request holds. The zero value lets the turn fail.
type Failover struct {
	// To are the providers that are asked in order, each at most once in a turn. They read the whole
	// conversation. None by default.
	To []FailoverTo
}

// FailoverTo is a provider with its model.
type FailoverTo struct {
	// Provider is the provider's name in model_providers.
	Provider string `json:"provider"`
	// Model is the model there.
	Model string `json:"model"`
}

// Validate returns an error that begins with the key that is wrong, or nil.
func (f Failover) Validate() error {
	for i, to := range f.To {
		if to.Provider == "" || to.Model == "" {
			return fmt.Errorf("to[%d]: it needs a provider and a model", i)
		}
	}
	return nil
}
