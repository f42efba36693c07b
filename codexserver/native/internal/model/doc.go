// Package model is a client of model providers. It implements the streaming APIs Chat
// Completions and Responses of OpenAI.
//
//	Request ──▶ Client.Stream ──▶ events* ──▶ Response or an error
//
// [Client.Stream] requests one response. It returns only whole responses: if one breaks off it
// returns an error, so that no part of it is executed. [Client.Again] says whether and when the
// caller should try again; nothing here does it by itself.
//
// Providers are not trusted. The sizes of a response, of an event and of an error, and the
// number of tool calls are limited. If the provider is silent for its idle timeout, Stream
// fails.
package model
