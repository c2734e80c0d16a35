// Drives the unmodified firebase-admin for Go through one scenario and prints one JSON line per step.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	firebase "firebase.google.com/go/v4"
	"firebase.google.com/go/v4/errorutils"
	"firebase.google.com/go/v4/messaging"
	"google.golang.org/api/option"
)

// named tells which of the SDK's own questions about an error is answered with yes.
func named(err error) string {
	switch {
	case messaging.IsUnregistered(err):
		return "Unregistered"
	case messaging.IsThirdPartyAuthError(err):
		return "ThirdPartyAuthError"
	case messaging.IsQuotaExceeded(err):
		return "QuotaExceeded"
	case messaging.IsUnavailable(err):
		return "Unavailable"
	case messaging.IsInvalidArgument(err), errorutils.IsInvalidArgument(err):
		return "InvalidArgument"
	}
	return "other"
}

func attempt(step string, call func() (any, error)) {
	facts := map[string]any{"step": step, "ok": true}
	if value, err := call(); err != nil {
		facts["ok"], facts["error"], facts["detail"] = false, named(err), err.Error()
	} else {
		facts["value"] = value
	}
	line, _ := json.Marshal(facts)
	fmt.Println(string(line))
}

func message(token string) *messaging.Message {
	return &messaging.Message{
		Token:        token,
		Notification: &messaging.Notification{Title: "Hello", Body: "from a judge"},
		Data:         map[string]string{"key": "value"},
	}
}

func rich(token string) *messaging.Message {
	made, badge := message(token), 3
	made.Android = &messaging.AndroidConfig{CollapseKey: "news", Priority: "high",
		Notification: &messaging.AndroidNotification{ChannelID: "main", Color: "#ff0000"}}
	made.APNS = &messaging.APNSConfig{Headers: map[string]string{"apns-priority": "10"},
		Payload: &messaging.APNSPayload{Aps: &messaging.Aps{Badge: &badge, Sound: "default"}}}
	made.Webpush = &messaging.WebpushConfig{Headers: map[string]string{"Urgency": "high"}}
	made.FCMOptions = &messaging.FCMOptions{AnalyticsLabel: "judges"}
	return made
}

func counted(batch *messaging.BatchResponse, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	errors := []string{}
	for _, response := range batch.Responses {
		if response.Error != nil {
			errors = append(errors, named(response.Error))
		}
	}
	return map[string]any{"success": batch.SuccessCount, "failure": batch.FailureCount, "errors": errors}, nil
}

func changed(answer *messaging.TopicManagementResponse, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return map[string]any{"success": answer.SuccessCount, "failure": answer.FailureCount}, nil
}

// emulated returns an app that sends to the emulator at a URL.
func emulated(ctx context.Context, credential, url string) *firebase.App {
	app, err := firebase.NewApp(ctx, nil,
		option.WithCredentialsFile(credential),
		option.WithEndpoint(url+"/v1"))
	if err != nil {
		panic(err)
	}
	return app
}

// main takes the file of the service account, then "at" and the URL of an emulator, or "once" to end after the first step.
func main() {
	ctx := context.Background()
	if slices.Contains(os.Args, "at") {
		client, err := emulated(ctx, os.Args[1], os.Args[3]).Messaging(ctx)
		if err != nil {
			panic(err)
		}
		attempt("send", func() (any, error) { return client.Send(ctx, message("phone")) })
		return
	}
	app, err := firebase.NewApp(ctx, nil, option.WithCredentialsFile(os.Args[1]))
	if err != nil {
		panic(err)
	}
	client, err := app.Messaging(ctx)
	if err != nil {
		panic(err)
	}
	send := func(made *messaging.Message) func() (any, error) {
		return func() (any, error) { return client.Send(ctx, made) }
	}
	attempt("send", send(message("good")))
	if slices.Contains(os.Args, "once") {
		return
	}
	attempt("rich", send(rich("rich")))
	attempt("dry run", func() (any, error) { return client.SendDryRun(ctx, message("dry")) })
	many := []*messaging.Message{}
	for number := range 19 {
		many = append(many, message(fmt.Sprintf("each-%d", number)))
	}
	attempt("send each", func() (any, error) { return counted(client.SendEach(ctx, append(many, message("gone-many")))) })
	multicast := &messaging.MulticastMessage{Tokens: []string{"multi-1", "multi-2"}, Data: map[string]string{"a": "b"}}
	attempt("multicast", func() (any, error) { return counted(client.SendEachForMulticast(ctx, multicast)) })
	both := []string{"good", "rich"}
	attempt("subscribe", func() (any, error) { return changed(client.SubscribeToTopic(ctx, both, "news")) })
	data := map[string]string{"a": "b"}
	attempt("topic", send(&messaging.Message{Topic: "news", Data: data}))
	condition := "'news' in topics && !('sport' in topics)"
	attempt("condition", send(&messaging.Message{Condition: condition, Data: data}))
	attempt("unsubscribe", func() (any, error) { return changed(client.UnsubscribeFromTopic(ctx, both, "news")) })
	for _, token := range []string{"gone", "busy"} {
		attempt(token, send(message(token)))
	}
	big := map[string]string{"a": strings.Repeat("b", 5000)}
	attempt("too big", send(&messaging.Message{Token: "big", Data: big}))
}
