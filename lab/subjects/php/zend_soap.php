<?php
// SOAP by Zend Framework 1, which wraps ext-soap; loaded when the framework is there.
declare(strict_types=1);

final class ZendSoap implements Codec
{
    private ?Zend_Soap_Server $server = null;
    private ?SoapWork $work = null;
    private ?TimedZendClient $client = null;

    public function type(): string
    {
        return 'text/xml; charset=utf-8';
    }

    public function answer(string $op, string $body, callable $work): string
    {
        if ($this->server === null) {
            $this->work = new SoapWork($work);
            $this->server = new Zend_Soap_Server(Soap::WSDL, Soap::OPTIONS + ['soap_version' => SOAP_1_1]);
            $this->server->setReturnResponse(true);
            $this->server->setObject($this->work);
        }
        $this->work->work = $work;
        return (string) $this->server->handle($body);
    }

    public function ask(string $op, string $address, array $content, Stamps $stamps): array
    {
        $options = Soap::OPTIONS + ['soap_version' => SOAP_1_1, 'location' => $address];
        $this->client ??= new TimedZendClient(Soap::WSDL, $options);
        $this->client->stamps = $stamps;
        return content_of($this->client->__call($op, [wrapped($content)]));
    }
}

/** Zend's client, with times around the transport. */
final class TimedZendClient extends Zend_Soap_Client
{
    public Stamps $stamps;

    public function _doRequest(Zend_Soap_Client_Common $client, $request, $location, $action, $version, $one_way = null)
    {
        $this->stamps->serialized = hrtime(true);
        $answer = parent::_doRequest($client, $request, $location, $action, $version, $one_way);
        $this->stamps->first = $this->stamps->end = hrtime(true);
        $this->stamps->bytes = strlen((string) $answer);
        return $answer;
    }
}
