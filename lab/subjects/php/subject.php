<?php
// Subjects in PHP. Usage: php subject.php rest+json|rest+xml|xmlrpc|soap|zend-xmlrpc|zend-soap|zend-rest
declare(strict_types=1);

require __DIR__ . '/lsp.php';
require __DIR__ . '/http.php';
require __DIR__ . '/codecs.php';
require __DIR__ . '/zend.php';

ini_set('display_errors', 'stderr');
$zend = str_starts_with($argv[1], 'zend-');
[$class, $extension] = match ($argv[1]) {
    'rest+json' => ['Json', 'json'],
    'rest+xml' => ['Xml', 'SimpleXML'],
    'xmlrpc' => ['XmlRpc', 'xmlrpc'],
    'soap' => ['Soap', 'soap'],
    'zend-xmlrpc' => ['ZendXmlRpc', 'dom'],
    'zend-soap' => ['ZendSoap', 'soap'],
    'zend-rest' => ['ZendRest', 'dom'],
};
$codec = function (array $factors) use ($class, $zend): Codec {
    $zend ? zend_at($factors['zend'] ?? null) : null;
    return new $class($factors);
};
$versions = [$extension => (string) phpversion($extension)];
$file = getenv('ZEND_PATH') . '/Zend/Version.php';
if ($zend && is_file($file)) {
    require_once $file;
    $versions['zend'] = Zend_Version::VERSION;
}
speak($codec, $versions);
